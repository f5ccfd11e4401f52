; The places of words in order; words that are equal keep their order.
;
; Few are inserted one by one. Where NumPy's sort of words is known, as it is vectorised, each word
; gives it its first bits with its place behind them; the rare runs of words that only their last
; bits tell apart are put in order afterwards. Else words are counted by their digits of 8 bits,
; and distributed by one digit after the other, from the last to the first; a digit that all have
; in common is left out.

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare i1 @llvm.vector.reduce.or.v8i1(<8 x i1>)

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

; Put n keys in order, and the words beside them, without NumPy; the last two are buffer for as many.
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

; The places 0, 1, ..., n - 1.
define internal void @number(ptr %places, i64 %n) #0 {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %one]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %end
one:
  %at = getelementptr i64, ptr %places, i64 %i
  store i64 %i, ptr %at
  %i1 = add i64 %i, 1
  br label %next
end:
  ret void
}

; How many of their first bits all n words have in common, 63 at most.
define internal i64 @common(ptr %keys, i64 %n) #0 {
entry:
  %first = load i64, ptr %keys
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %one]
  %apart = phi i64 [0, %entry], [%apart1, %one]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %end
one:
  %at = getelementptr i64, ptr %keys, i64 %i
  %key = load i64, ptr %at
  %differs = xor i64 %key, %first
  %apart1 = or i64 %apart, %differs
  %i1 = add i64 %i, 1
  br label %next
end:
  %zeros = call i64 @llvm.ctlz.i64(i64 %apart, i1 false)
  %found = call i64 @llvm.umin.i64(i64 %zeros, i64 63)
  ret i64 %found
}

; A run of places whose words begin alike, put in order by the whole words.
define internal void @mend(ptr %keys, ptr %places, i64 %n, ptr %own, ptr %more.keys, ptr %more.places) #0 {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %one]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %end
one:
  %place.at = getelementptr i64, ptr %places, i64 %i
  %place = load i64, ptr %place.at
  %key.at = getelementptr i64, ptr %keys, i64 %place
  %key = load i64, ptr %key.at
  %own.at = getelementptr i64, ptr %own, i64 %i
  store i64 %key, ptr %own.at
  %i1 = add i64 %i, 1
  br label %next
end:
  call void @order(ptr %own, ptr %places, i64 %n, ptr %more.keys, ptr %more.places)
  ret void
}

; The places of n words in order, by a sort of words with their places in their last bits.
define internal void @packed(ptr %keys, ptr %places, i64 %n, ptr %words, ptr %more.keys, ptr %more.places, ptr %sort) #0 {
entry:
  %common = call i64 @common(ptr %keys, i64 %n)
  %last = sub i64 %n, 1
  %unused = call i64 @llvm.ctlz.i64(i64 %last, i1 false)
  %bits = sub i64 64, %unused
  %whole = shl i64 1, %bits
  %low = sub i64 %whole, 1
  %high = xor i64 %low, -1
  br label %pack
pack:
  %i = phi i64 [0, %entry], [%i1, %pack.one]
  %pack.more = icmp slt i64 %i, %n
  br i1 %pack.more, label %pack.one, label %sorted
pack.one:
  %key.at = getelementptr i64, ptr %keys, i64 %i
  %key = load i64, ptr %key.at
  %shifted = shl i64 %key, %common
  %begin = and i64 %shifted, %high
  %word = or i64 %begin, %i
  %word.at = getelementptr i64, ptr %words, i64 %i
  store i64 %word, ptr %word.at
  %i1 = add i64 %i, 1
  br label %pack
sorted:
  %0 = call i32 %sort(ptr %words, i64 %n, ptr null)
  br label %give
give:
  %j = phi i64 [0, %sorted], [%j1, %give.one]
  %give.more = icmp slt i64 %j, %n
  br i1 %give.more, label %give.one, label %given
give.one:
  %from = getelementptr i64, ptr %words, i64 %j
  %found = load i64, ptr %from
  %place = and i64 %found, %low
  %to = getelementptr i64, ptr %places, i64 %j
  store i64 %place, ptr %to
  %j1 = add i64 %j, 1
  br label %give
given:
  %exact = icmp uge i64 %common, %bits
  br i1 %exact, label %end, label %look
look:
  %k = phi i64 [1, %given], [%k1, %looked]
  %start = phi i64 [0, %given], [%start1, %looked]
  %wrong = phi i1 [false, %given], [%wrong1, %looked]
  %look.more = icmp slt i64 %k, %n
  br i1 %look.more, label %compare, label %final
compare:
  %k.before = sub i64 %k, 1
  %one.at = getelementptr i64, ptr %words, i64 %k
  %one = load i64, ptr %one.at
  %before.at = getelementptr i64, ptr %words, i64 %k.before
  %before = load i64, ptr %before.at
  %differs = xor i64 %one, %before
  %alike = icmp ule i64 %differs, %low
  br i1 %alike, label %same, label %other
same:
  %one.place = and i64 %one, %low
  %before.place = and i64 %before, %low
  %one.key.at = getelementptr i64, ptr %keys, i64 %one.place
  %one.key = load i64, ptr %one.key.at
  %before.key.at = getelementptr i64, ptr %keys, i64 %before.place
  %before.key = load i64, ptr %before.key.at
  %falls = icmp ult i64 %one.key, %before.key
  %wrong.now = or i1 %wrong, %falls
  br label %looked
other:
  br i1 %wrong, label %repair, label %looked
repair:
  %run = sub i64 %k, %start
  %run.places = getelementptr i64, ptr %places, i64 %start
  %run.words = getelementptr i64, ptr %words, i64 %start
  call void @mend(ptr %keys, ptr %run.places, i64 %run, ptr %run.words, ptr %more.keys, ptr %more.places)
  br label %looked
looked:
  %start1 = phi i64 [%start, %same], [%k, %other], [%k, %repair]
  %wrong1 = phi i1 [%wrong.now, %same], [false, %other], [false, %repair]
  %k1 = add i64 %k, 1
  br label %look
final:
  br i1 %wrong, label %repair.last, label %end
repair.last:
  %last.run = sub i64 %n, %start
  %last.places = getelementptr i64, ptr %places, i64 %start
  %last.words = getelementptr i64, ptr %words, i64 %start
  call void @mend(ptr %keys, ptr %last.places, i64 %last.run, ptr %last.words, ptr %more.keys, ptr %more.places)
  br label %end
end:
  ret void
}

; The places of n words in order. The words may be in order afterwards; three arrays are buffer for as
; many words. `sort` is NumPy's sort of words, or null.
define internal void @arrange(ptr %keys, ptr %places, i64 %n, ptr %words, ptr %more.keys, ptr %more.places, ptr %sort) #0 {
entry:
  %few = icmp sle i64 %n, 16
  %none = icmp eq ptr %sort, null
  %plain = or i1 %few, %none
  br i1 %plain, label %simple, label %packs
simple:
  call void @number(ptr %places, i64 %n)
  call void @order(ptr %keys, ptr %places, i64 %n, ptr %more.keys, ptr %more.places)
  ret void
packs:
  call void @packed(ptr %keys, ptr %places, i64 %n, ptr %words, ptr %more.keys, ptr %more.places, ptr %sort)
  ret void
}

; The first `many` of n words in order, kept at the beginning with the words beside them; the last of
; them.
define internal i64 @keep(ptr %keys, ptr %beside, i64 %n, i64 %many, ptr %places, ptr %words, ptr %more.keys, ptr %more.places, ptr %sort) #0 {
entry:
  %copies = getelementptr i64, ptr %more.keys, i64 %n
  %bytes = shl i64 %n, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %copies, ptr %keys, i64 %bytes, i1 false)
  call void @arrange(ptr %copies, ptr %places, i64 %n, ptr %words, ptr %more.keys, ptr %more.places, ptr %sort)
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %one]
  %more = icmp slt i64 %i, %many
  br i1 %more, label %one, label %end
one:
  %at = getelementptr i64, ptr %places, i64 %i
  %place = load i64, ptr %at
  %key.at = getelementptr i64, ptr %keys, i64 %place
  %key = load i64, ptr %key.at
  %word.at = getelementptr i64, ptr %beside, i64 %place
  %word = load i64, ptr %word.at
  %to = getelementptr i64, ptr %more.keys, i64 %i
  store i64 %key, ptr %to
  %to.word = getelementptr i64, ptr %more.places, i64 %i
  store i64 %word, ptr %to.word
  %i1 = add i64 %i, 1
  br label %next
end:
  %kept = shl i64 %many, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %keys, ptr %more.keys, i64 %kept, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %beside, ptr %more.places, i64 %kept, i1 false)
  %before = sub i64 %many, 1
  %last.at = getelementptr i64, ptr %keys, i64 %before
  %last = load i64, ptr %last.at
  ret i64 %last
}

; The places of the first `many` of n words in order, as @arrange finds all.
;
; Of very many words only those are looked at that come before the last of the first ones so far.
; They are gathered at the beginning, in front of the word that is looked at, and put in order when
; there are `most`.
define void @first(ptr %keys, ptr %places, i64 %n, i64 %many, ptr %words, ptr %more.keys, ptr %more.places, ptr %sort) #0 {
entry:
  %twice = shl i64 %many, 1
  %most = add i64 %twice, 128
  %needed = shl i64 %most, 2
  %several = icmp sge i64 %n, %needed
  %some = icmp sgt i64 %many, 0
  %selects = and i1 %several, %some
  br i1 %selects, label %begin, label %all
all:
  call void @arrange(ptr %keys, ptr %places, i64 %n, ptr %words, ptr %more.keys, ptr %more.places, ptr %sort)
  ret void
begin:
  %own = getelementptr i64, ptr %words, i64 %most
  call void @number(ptr %places, i64 %most)
  %last = call i64 @keep(ptr %keys, ptr %places, i64 %most, i64 %many, ptr %own, ptr %words, ptr %more.keys, ptr %more.places, ptr %sort)
  br label %next
next:
  %i = phi i64 [%most, %begin], [%i8, %skip], [%i.end, %passed]
  %kept = phi i64 [%many, %begin], [%kept, %skip], [%kept.end, %passed]
  %limit = phi i64 [%last, %begin], [%limit, %skip], [%limit.end, %passed]
  %i8 = add i64 %i, 8
  %wide = icmp sle i64 %i8, %n
  br i1 %wide, label %eight, label %rest
eight:
  %eight.at = getelementptr i64, ptr %keys, i64 %i
  %eight.keys = load <8 x i64>, ptr %eight.at, align 8
  %limit.one = insertelement <8 x i64> poison, i64 %limit, i32 0
  %limits = shufflevector <8 x i64> %limit.one, <8 x i64> poison, <8 x i32> zeroinitializer
  %before = icmp ult <8 x i64> %eight.keys, %limits
  %any = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %before)
  br i1 %any, label %rest, label %skip
skip:
  br label %next
rest:
  %end = call i64 @llvm.umin.i64(i64 %i8, i64 %n)
  br label %look
look:
  %i.end = phi i64 [%i, %rest], [%i1, %looked]
  %kept.end = phi i64 [%kept, %rest], [%kept1, %looked]
  %limit.end = phi i64 [%limit, %rest], [%limit1, %looked]
  %look.more = icmp slt i64 %i.end, %end
  br i1 %look.more, label %one, label %passed
one:
  %key.at = getelementptr i64, ptr %keys, i64 %i.end
  %key = load i64, ptr %key.at
  %is.before = icmp ult i64 %key, %limit.end
  br i1 %is.before, label %take, label %looked
take:
  %to = getelementptr i64, ptr %keys, i64 %kept.end
  store i64 %key, ptr %to
  %to.place = getelementptr i64, ptr %places, i64 %kept.end
  store i64 %i.end, ptr %to.place
  %taken = add i64 %kept.end, 1
  %full = icmp eq i64 %taken, %most
  br i1 %full, label %sort.them, label %looked
sort.them:
  %new = call i64 @keep(ptr %keys, ptr %places, i64 %most, i64 %many, ptr %own, ptr %words, ptr %more.keys, ptr %more.places, ptr %sort)
  br label %looked
looked:
  %kept1 = phi i64 [%kept.end, %one], [%taken, %take], [%many, %sort.them]
  %limit1 = phi i64 [%limit.end, %one], [%limit.end, %take], [%new, %sort.them]
  %i1 = add i64 %i.end, 1
  br label %look
passed:
  %over = icmp slt i64 %i.end, %n
  br i1 %over, label %next, label %finish
finish:
  %1 = call i64 @keep(ptr %keys, ptr %places, i64 %kept.end, i64 %many, ptr %own, ptr %words, ptr %more.keys, ptr %more.places, ptr %sort)
  ret void
}
