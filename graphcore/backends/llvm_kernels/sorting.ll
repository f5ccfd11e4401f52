; Words put in order, and with each the word beside it; words that are equal keep their order.
;
; Few are inserted one by one. Many are counted by their digits of 8 bits, and distributed by one
; digit after the other, from the last to the first; a digit that all have in common is left out.

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @insert(ptr %keys, ptr %beside, i64 %n) #0 {
entry:
  br label %next
next:
  %i = phi i64 [1, %entry], [%i1, %placed]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %end
one:
  %key.at = getelementptr i64, ptr %keys, i64 %i
  %key = load i64, ptr %key.at
  %word.at = getelementptr i64, ptr %beside, i64 %i
  %word = load i64, ptr %word.at
  br label %look
look:
  %j = phi i64 [%i, %one], [%before, %move]
  %before = sub i64 %j, 1
  %any = icmp sgt i64 %j, 0
  br i1 %any, label %compare, label %place
compare:
  %other.at = getelementptr i64, ptr %keys, i64 %before
  %other = load i64, ptr %other.at
  %larger = icmp ugt i64 %other, %key
  br i1 %larger, label %move, label %place
move:
  %other.word.at = getelementptr i64, ptr %beside, i64 %before
  %other.word = load i64, ptr %other.word.at
  %to = getelementptr i64, ptr %keys, i64 %j
  store i64 %other, ptr %to
  %to.word = getelementptr i64, ptr %beside, i64 %j
  store i64 %other.word, ptr %to.word
  br label %look
place:
  %home = getelementptr i64, ptr %keys, i64 %j
  store i64 %key, ptr %home
  %home.word = getelementptr i64, ptr %beside, i64 %j
  store i64 %word, ptr %home.word
  br label %placed
placed:
  %i1 = add i64 %i, 1
  br label %next
end:
  ret void
}

; How many keys have each value of each digit: 8 times 256 counts.
define internal void @count(ptr %keys, i64 %n, ptr %counts) #0 {
entry:
  call void @llvm.memset.p0.i64(ptr %counts, i8 0, i64 16384, i1 false)
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %counted]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %end
one:
  %key.at = getelementptr i64, ptr %keys, i64 %i
  %key = load i64, ptr %key.at
  br label %digit
digit:
  %d = phi i64 [0, %one], [%d1, %digit]
  %rest = phi i64 [%key, %one], [%shifted, %digit]
  %value = and i64 %rest, 255
  %row = shl i64 %d, 8
  %cell = or i64 %row, %value
  %at = getelementptr i64, ptr %counts, i64 %cell
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  %shifted = lshr i64 %rest, 8
  %d1 = add i64 %d, 1
  %on = icmp slt i64 %d1, 8
  br i1 %on, label %digit, label %counted
counted:
  %i1 = add i64 %i, 1
  br label %next
end:
  ret void
}

; The counts of one digit become the places where its values begin.
define internal void @begin(ptr %counts) #0 {
entry:
  br label %one
one:
  %i = phi i64 [0, %entry], [%i1, %one]
  %total = phi i64 [0, %entry], [%sum, %one]
  %at = getelementptr i64, ptr %counts, i64 %i
  %count = load i64, ptr %at
  store i64 %total, ptr %at
  %sum = add i64 %total, %count
  %i1 = add i64 %i, 1
  %on = icmp slt i64 %i1, 256
  br i1 %on, label %one, label %end
end:
  ret void
}

; Keys and the words beside them go where their digit says.
define internal void @distribute(ptr %keys, ptr %beside, ptr %new.keys, ptr %new.beside, i64 %n, ptr %starts, i64 %shift) #0 {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %one]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %end
one:
  %key.at = getelementptr i64, ptr %keys, i64 %i
  %key = load i64, ptr %key.at
  %word.at = getelementptr i64, ptr %beside, i64 %i
  %word = load i64, ptr %word.at
  %shifted = lshr i64 %key, %shift
  %value = and i64 %shifted, 255
  %start.at = getelementptr i64, ptr %starts, i64 %value
  %place = load i64, ptr %start.at
  %after = add i64 %place, 1
  store i64 %after, ptr %start.at
  %to = getelementptr i64, ptr %new.keys, i64 %place
  store i64 %key, ptr %to
  %to.word = getelementptr i64, ptr %new.beside, i64 %place
  store i64 %word, ptr %to.word
  %i1 = add i64 %i, 1
  br label %next
end:
  ret void
}

; Put n keys in order, and the words beside them; the last two are room for as many.
define void @order(ptr %keys, ptr %beside, i64 %n, ptr %more.keys, ptr %more.beside) #0 {
entry:
  %counts = alloca [2048 x i64]
  %few = icmp sle i64 %n, 64
  br i1 %few, label %short, label %long
short:
  call void @insert(ptr %keys, ptr %beside, i64 %n)
  ret void
long:
  call void @count(ptr %keys, i64 %n, ptr %counts)
  br label %next
next:
  %d = phi i64 [0, %long], [%d1, %done]
  %from = phi ptr [%keys, %long], [%from1, %done]
  %from.words = phi ptr [%beside, %long], [%from.words1, %done]
  %to = phi ptr [%more.keys, %long], [%to1, %done]
  %to.words = phi ptr [%more.beside, %long], [%to.words1, %done]
  %more = icmp slt i64 %d, 8
  br i1 %more, label %look, label %end
look:
  %shift = shl i64 %d, 3
  %cell = shl i64 %d, 8
  %row = getelementptr i64, ptr %counts, i64 %cell
  %first = load i64, ptr %from
  %shifted = lshr i64 %first, %shift
  %value = and i64 %shifted, 255
  %own.at = getelementptr i64, ptr %row, i64 %value
  %own = load i64, ptr %own.at
  %common = icmp eq i64 %own, %n
  br i1 %common, label %done, label %go
go:
  call void @begin(ptr %row)
  call void @distribute(ptr %from, ptr %from.words, ptr %to, ptr %to.words, i64 %n, ptr %row, i64 %shift)
  br label %done
done:
  %from1 = phi ptr [%from, %look], [%to, %go]
  %from.words1 = phi ptr [%from.words, %look], [%to.words, %go]
  %to1 = phi ptr [%to, %look], [%from, %go]
  %to.words1 = phi ptr [%to.words, %look], [%from.words, %go]
  %d1 = add i64 %d, 1
  br label %next
end:
  %home = icmp eq ptr %from, %keys
  br i1 %home, label %return, label %back
back:
  %bytes = shl i64 %n, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %keys, ptr %from, i64 %bytes, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %beside, ptr %from.words, i64 %bytes, i1 false)
  br label %return
return:
  ret void
}
