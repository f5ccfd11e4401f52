; The position of the first nan among n values of a type, which is put in for TYPE; -1 if none is.
; An array may lie where C puts it, so vectors are aligned as values are, to BYTES.
define i64 @first_nan_TYPE(ptr %x, i64 %n) #0 {
entry:
  %whole = and i64 %n, -16
  br label %next
next:
  %i = phi i64 [0, %entry], [%i16, %block]
  %more = icmp ult i64 %i, %whole
  br i1 %more, label %block, label %rest
block:                                              ; two vectors are compared at once
  %a.at = getelementptr TYPE, ptr %x, i64 %i
  %b.at = getelementptr TYPE, ptr %a.at, i64 8
  %a = load <8 x TYPE>, ptr %a.at, align BYTES
  %b = load <8 x TYPE>, ptr %b.at, align BYTES
  %unordered = fcmp uno <8 x TYPE> %a, %b
  %bits = bitcast <8 x i1> %unordered to i8
  %some = icmp ne i8 %bits, 0
  %i16 = add i64 %i, 16
  br i1 %some, label %rest, label %next
rest:
  %k = phi i64 [%i, %next], [%i, %block], [%k1, %on]
  %left = icmp ult i64 %k, %n
  br i1 %left, label %one, label %none
one:
  %y.at = getelementptr TYPE, ptr %x, i64 %k
  %y = load TYPE, ptr %y.at, align BYTES
  %nan = fcmp uno TYPE %y, %y
  br i1 %nan, label %found, label %on
on:
  %k1 = add i64 %k, 1
  br label %rest
found:
  ret i64 %k
none:
  ret i64 -1
}
