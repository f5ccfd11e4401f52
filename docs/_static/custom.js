// The keyboard scrolls what is too wide, and opens the side bars of narrow screens.

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

function replaceByButton(label) {
  const box = document.getElementById(label.htmlFor);
  const button = document.createElement("button");
  button.className = label.className;
  button.append(...label.childNodes);
  button.setAttribute("aria-label", box.getAttribute("aria-label"));
  const say = () => button.setAttribute("aria-expanded", String(box.checked));
  button.addEventListener("click", () => box.click());
  box.addEventListener("change", say);
  say();
  label.replaceWith(button);
}

function start() {
  document.querySelectorAll(".nav-overlay-icon, .toc-overlay-icon").forEach(replaceByButton);
  reach();
}

function close(event) {
  if (event.key === "Escape") {
    document.querySelectorAll(".sidebar-toggle:checked").forEach((box) => box.click());
  }
}

window.addEventListener("DOMContentLoaded", start);
window.addEventListener("keydown", close);
window.addEventListener("resize", reach);
