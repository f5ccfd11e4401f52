; Memory between two guard zones, full of rubbish: malloc and its kin for NumPy and for kernels.
; A block is GUARD bytes, of which the first 8 hold its size, its own bytes, and GUARD bytes.

@fill = global i8 127                   ; what new memory is full of
@damaged = global i64 0                 ; how many blocks were found with a zone written to
@where = global [2 x i64] zeroinitializer ; the size of the last of them, and where it was written

declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.umin.i64(i64, i64)

define ptr @guarded_malloc(ptr %context, i64 %size) {
  %fill = load i8, ptr @fill
  %p = call ptr @block(i64 %size, i8 %fill)
  ret ptr %p
}

define ptr @guarded_calloc(ptr %context, i64 %count, i64 %each) {
  %size = mul i64 %count, %each
  %p = call ptr @block(i64 %size, i8 0)
  ret ptr %p
}

define ptr @guarded_realloc(ptr %context, ptr %old, i64 %size) {
  %new = call ptr @guarded_malloc(ptr null, i64 %size)
  %is.first = icmp eq ptr %old, null
  %is.lost = icmp eq ptr %new, null
  %nothing = or i1 %is.first, %is.lost
  br i1 %nothing, label %end, label %move
move:
  %head = getelementptr i8, ptr %old, i64 -GUARD
  %had = load i64, ptr %head
  %both = call i64 @llvm.umin.i64(i64 %had, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 %both, i1 false)
  call void @guarded_free(ptr null, ptr %old, i64 0)
  br label %end
end:
  ret ptr %new
}

define void @guarded_free(ptr %context, ptr %p, i64 %size) {
  %none = icmp eq ptr %p, null
  br i1 %none, label %end, label %check
check:
  call void @check(ptr %p)
  %head = getelementptr i8, ptr %p, i64 -GUARD
  call void @free(ptr %head)
  br label %end
end:
  ret void
}

define ptr @growing(ptr %old, i64 %size) {
  %new = call ptr @guarded_realloc(ptr null, ptr %old, i64 %size)
  ret ptr %new
}

define void @free_grown(ptr %p) {
  call void @guarded_free(ptr null, ptr %p, i64 0)
  ret void
}

define internal ptr @block(i64 %size, i8 %fill) {
  %all = add i64 %size, TWICE
  %fits = icmp uge i64 %all, %size
  br i1 %fits, label %get, label %lost
get:
  %head = call ptr @malloc(i64 %all)
  %is.lost = icmp eq ptr %head, null
  br i1 %is.lost, label %lost, label %got
got:
  call void @llvm.memset.p0.i64(ptr %head, i8 ZONE, i64 GUARD, i1 false)
  %p = getelementptr i8, ptr %head, i64 GUARD
  call void @llvm.memset.p0.i64(ptr %p, i8 %fill, i64 %size, i1 false)
  %tail = getelementptr i8, ptr %p, i64 %size
  call void @llvm.memset.p0.i64(ptr %tail, i8 ZONE, i64 GUARD, i1 false)
  store i64 %size, ptr %head
  ret ptr %p
lost:
  ret ptr null
}

; Count a block one of whose zones has been written to.
define void @check(ptr %p) {
  %head = getelementptr i8, ptr %p, i64 -GUARD
  %size = load i64, ptr %head
  br label %next
next:
  %i = phi i64 [8, %0], [%i1, %on]
  %more = icmp ult i64 %i, TWICE
  br i1 %more, label %one, label %end
one:
  %behind = icmp uge i64 %i, GUARD
  %skip = select i1 %behind, i64 %size, i64 0
  %at = add i64 %i, %skip
  %place = getelementptr i8, ptr %head, i64 %at
  %byte = load i8, ptr %place
  %whole = icmp eq i8 %byte, ZONE
  br i1 %whole, label %on, label %wrong
on:
  %i1 = add i64 %i, 1
  br label %next
wrong:
  %n = load i64, ptr @damaged
  %n1 = add i64 %n, 1
  store i64 %n1, ptr @damaged
  store i64 %size, ptr @where
  %second = getelementptr i64, ptr @where, i64 1
  %from = sub i64 %at, GUARD
  store i64 %from, ptr %second
  br label %end
end:
  ret void
}
