// What scrolls sideways can be scrolled with the keyboard.

"use strict";

function reach() {
  for (const box of document.querySelectorAll("article pre, article .table-wrapper")) {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
    } else {
      box.removeAttribute("tabindex");
    }
  }
}

window.addEventListener("DOMContentLoaded", reach);
window.addEventListener("resize", reach);
