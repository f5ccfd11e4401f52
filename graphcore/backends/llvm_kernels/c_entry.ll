; What all C functions share: workspaces, failures, and arrays that overlap. No Python runs here.
; HEAD, SLOTS and LINE are put in before the text is compiled.
;
; The pool of a C function, in words:
;   0  the template of a workspace        8  1 while a failure is being noted or read
;   1  how many bytes it has              9  how many calls have failed since one was read
;   2  which words hold addresses in      10 the status of the last one
;      the workspace, and which start     11 two numbers that describe it
;   3  how many these are                 13 how many sizes a failure has
;   4  which words hold memory of realloc 14 how many words a record has
;   5  how many these are                 15 (free)
;   16 the slots: each is a line of a flag, 1 while a call has it, and a workspace or null
;   behind them: the sizes of the last failure, and its record
;
; A workspace is a template whose word 0 says how many bytes there are. Its addresses are those of
; buffers in it. A call takes a slot, or where all are taken one of its own, which it frees.

declare ptr @llvm.thread.pointer()
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare void @free_grown(ptr)                        ; the C library's, for memory that kernels got
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @PyCapsule_GetName(ptr)
declare void @Py_DecRef(ptr)

; A word of some.
define internal i64 @word(ptr %words, i64 %at) #0 {
  %p = getelementptr i64, ptr %words, i64 %at
  %word = load i64, ptr %p
  ret i64 %word
}

; A free slot, searched for from one on that differs from thread to thread; `own` if there is none.
; A child of a fork never sees the slots free that other threads had then.
define ptr @take(ptr %pool, ptr %own) #0 {
entry:
  %thread = call ptr @llvm.thread.pointer()
  %thread.i = ptrtoint ptr %thread to i64
  %hash = lshr i64 %thread.i, 12
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %other]
  %sum = add i64 %hash, %i
  %n = urem i64 %sum, SLOTS
  %line = shl i64 %n, 3
  %at = add i64 %line, 16
  %slot = getelementptr i64, ptr %pool, i64 %at
  %flag = load atomic i64, ptr %slot monotonic, align 8
  %free = icmp eq i64 %flag, 0
  br i1 %free, label %try, label %other
try:
  %before = atomicrmw xchg ptr %slot, i64 1 acquire
  %mine = icmp eq i64 %before, 0
  br i1 %mine, label %found, label %other
other:
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, SLOTS
  br i1 %more, label %next, label %none
found:
  ret ptr %slot
none:
  %its = getelementptr i64, ptr %own, i64 1
  store ptr null, ptr %its
  ret ptr %own
}

; Let others take a slot; the workspace of one that is the call's own is freed.
define void @give(ptr %pool, ptr %slot, ptr %own) #0 {
  %shared = icmp ne ptr %slot, %own
  br i1 %shared, label %release, label %drop
release:
  store atomic i64 0, ptr %slot release, align 8
  ret void
drop:
  call void @drop(ptr %pool, ptr %slot)
  ret void
}

; Free the workspace of a slot.
define void @drop(ptr %pool, ptr %slot) #0 {
entry:
  %its = getelementptr i64, ptr %slot, i64 1
  %words = load ptr, ptr %its
  %none = icmp eq ptr %words, null
  br i1 %none, label %end, label %some
some:
  call void @drop_growing(ptr %pool, ptr %words)
  call void @free(ptr %words)
  store ptr null, ptr %its
  br label %end
end:
  ret void
}

; Free what a workspace has got from realloc.
define internal void @drop_growing(ptr %pool, ptr %words) #0 {
entry:
  %places.i = call i64 @word(ptr %pool, i64 4)
  %places = inttoptr i64 %places.i to ptr
  %count = call i64 @word(ptr %pool, i64 5)
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %one]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %at = call i64 @word(ptr %places, i64 %i)
  %p = getelementptr ptr, ptr %words, i64 %at
  %memory = load ptr, ptr %p
  call void @free_grown(ptr %memory)
  %i1 = add i64 %i, 1
  br label %next
end:
  ret void
}

; A workspace of at least so many bytes for the call that has a slot, as the template is; its buffers
; begin at these offsets. Null without memory.
define ptr @ready(ptr %pool, ptr %slot, i64 %bytes, ptr %starts) #0 {
entry:
  %its = getelementptr i64, ptr %slot, i64 1
  %old = load ptr, ptr %its
  %none = icmp eq ptr %old, null
  br i1 %none, label %new, label %look
look:
  %has = load i64, ptr %old
  %enough = icmp uge i64 %has, %bytes
  br i1 %enough, label %again, label %small
again:
  call void @drop_growing(ptr %pool, ptr %old)
  br label %fill
small:
  call void @drop(ptr %pool, ptr %slot)
  br label %new
new:
  %got = call ptr @aligned_alloc(i64 LINE, i64 %bytes)
  %lost = icmp eq ptr %got, null
  br i1 %lost, label %full, label %fill
full:
  ret ptr null
fill:
  %words = phi ptr [%old, %again], [%got, %new]
  %size = phi i64 [%has, %again], [%bytes, %new]
  %template.i = call i64 @word(ptr %pool, i64 0)
  %template = inttoptr i64 %template.i to ptr
  %count.bytes = call i64 @word(ptr %pool, i64 1)
  call void @llvm.memcpy.p0.p0.i64(ptr %words, ptr %template, i64 %count.bytes, i1 false)
  store i64 %size, ptr %words
  store ptr %words, ptr %its
  %places.i = call i64 @word(ptr %pool, i64 2)
  %places = inttoptr i64 %places.i to ptr
  %count = call i64 @word(ptr %pool, i64 3)
  br label %next
next:
  %i = phi i64 [0, %fill], [%i1, %one]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %pair = shl i64 %i, 1
  %second = add i64 %pair, 1
  %at = call i64 @word(ptr %places, i64 %pair)
  %which = call i64 @word(ptr %places, i64 %second)
  %start = call i64 @word(ptr %starts, i64 %which)
  %buffer = getelementptr i8, ptr %words, i64 %start
  %p = getelementptr ptr, ptr %words, i64 %at
  store ptr %buffer, ptr %p
  %i1 = add i64 %i, 1
  br label %next
end:
  ret ptr %words
}

; Where so many buffers of equal size begin, one behind the other; and where the last one ends.
define i64 @line_up(ptr %starts, i64 %begin, i64 %bytes, i64 %count) #0 {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %one]
  %at = phi i64 [%begin, %entry], [%behind, %one]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %to = getelementptr i64, ptr %starts, i64 %i
  store i64 %at, ptr %to
  %behind = add i64 %at, %bytes
  %i1 = add i64 %i, 1
  br label %next
end:
  ret i64 %at
}

; The numbers of two arrays that overlap, the second of which is a result, as one: first + 2^32
; second; -1 if there are none. The table has the arrays, `bytes` their sizes, inputs come first.
define i64 @overlap(ptr %table, ptr %bytes, i64 %inputs, i64 %all) #0 {
entry:
  br label %result
result:
  %j = phi i64 [%inputs, %entry], [%j1, %after]
  %more = icmp slt i64 %j, %all
  br i1 %more, label %begin, label %none
begin:
  %y.at = getelementptr i64, ptr %table, i64 %j
  %y = load i64, ptr %y.at
  %c.at = getelementptr i64, ptr %bytes, i64 %j
  %y.bytes = load i64, ptr %c.at
  br label %other
other:
  %i = phi i64 [0, %begin], [%i1, %on]
  %before = icmp slt i64 %i, %j
  br i1 %before, label %one, label %after
one:
  %x.at = getelementptr i64, ptr %table, i64 %i
  %x = load i64, ptr %x.at
  %b.at = getelementptr i64, ptr %bytes, i64 %i
  %x.bytes = load i64, ptr %b.at
  %x.behind = sub i64 %y, %x
  %y.behind = sub i64 %x, %y
  %a = icmp ult i64 %x.behind, %x.bytes
  %b = icmp ult i64 %y.behind, %y.bytes
  %either = or i1 %a, %b
  br i1 %either, label %both, label %on
both:                                               ; an empty array overlaps with none
  %x.some = icmp ne i64 %x.bytes, 0
  %y.some = icmp ne i64 %y.bytes, 0
  %some = and i1 %x.some, %y.some
  br i1 %some, label %found, label %on
on:
  %i1 = add i64 %i, 1
  br label %other
after:
  %j1 = add i64 %j, 1
  br label %result
found:
  %high = shl i64 %j, 32
  %pair = or i64 %i, %high
  ret i64 %pair
none:
  ret i64 -1
}

; Note that a call has failed: its status, two numbers, its sizes and its record, which may be null.
; Where another one is being noted, that is as late as this one.
define void @note_failure(ptr %pool, i64 %status, i64 %pair, ptr %sizes, ptr %record) #0 {
entry:
  %lock = getelementptr i64, ptr %pool, i64 8
  %before = atomicrmw xchg ptr %lock, i64 1 acquire
  %mine = icmp eq i64 %before, 0
  br i1 %mine, label %write, label %end
write:
  %count.at = getelementptr i64, ptr %pool, i64 9
  %count = load i64, ptr %count.at
  %count1 = add i64 %count, 1
  store i64 %count1, ptr %count.at
  %status.at = getelementptr i64, ptr %pool, i64 10
  store i64 %status, ptr %status.at
  %pair.at = getelementptr i64, ptr %pool, i64 11
  store i64 %pair, ptr %pair.at
  %many = call i64 @word(ptr %pool, i64 13)
  %sizes.bytes = shl i64 %many, 3
  %sizes.at = getelementptr i64, ptr %pool, i64 SIZES
  call void @llvm.memcpy.p0.p0.i64(ptr %sizes.at, ptr %sizes, i64 %sizes.bytes, i1 false)
  %none = icmp eq ptr %record, null
  br i1 %none, label %release, label %copy
copy:
  %words = call i64 @word(ptr %pool, i64 14)
  %bytes = shl i64 %words, 3
  %record.at = getelementptr i64, ptr %sizes.at, i64 %many
  call void @llvm.memcpy.p0.p0.i64(ptr %record.at, ptr %record, i64 %bytes, i1 false)
  br label %release
release:
  store atomic i64 0, ptr %lock release, align 8
  br label %end
end:
  ret void
}

; Copy the pool's words from 9 on, which describe the last failure, and forget it: 1, or 0 where one
; is being noted.
define i64 @read_failure(ptr %pool, ptr %to, i64 %bytes) #0 {
  %lock = getelementptr i64, ptr %pool, i64 8
  %before = atomicrmw xchg ptr %lock, i64 1 acquire
  %mine = icmp eq i64 %before, 0
  br i1 %mine, label %copy, label %busy
copy:
  %from = getelementptr i64, ptr %pool, i64 9
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  store i64 0, ptr %from
  store atomic i64 0, ptr %lock release, align 8
  ret i64 1
busy:
  ret i64 0
}

; Free all workspaces of a pool.
define void @free_all(ptr %pool) #0 {
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %next]
  %line = shl i64 %i, 3
  %at = add i64 %line, 16
  %slot = getelementptr i64, ptr %pool, i64 %at
  call void @drop(ptr %pool, ptr %slot)
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, SLOTS
  br i1 %more, label %next, label %done
done:
  ret void
}

; Let go of the object of a capsule, which stands before the capsule's name.
define void @release_owner(ptr %capsule) #0 {
  %name = call ptr @PyCapsule_GetName(ptr %capsule)
  %at = getelementptr ptr, ptr %name, i64 -1
  %owner = load ptr, ptr %at
  call void @Py_DecRef(ptr %owner)
  ret void
}
