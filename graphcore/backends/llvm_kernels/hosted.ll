; The entrance of a kernel that NumPy calls stand around; it is compiled behind entrance.ll, which
; says what programs and workspaces are. A workspace is found by the unknown sizes.
; Here `prepare` gets all arguments, and returns the workspace with arrays for the params alone.

declare i64 @PyLong_AsLongLong(ptr)

; A row-major copy of an argument that is an array in another order, such as a transposed one; its
; sizes are written to `sizes`. Null if the copy is not what a param takes either.
define internal ptr @row_major(ptr %x, ptr %dtype, i64 %axes, ptr %sizes) #0 {
  %type.at = getelementptr %object, ptr %x, i64 0, i32 1
  %type = load ptr, ptr %type.at
  %exact = icmp eq ptr %type, inttoptr (i64 NDARRAY to ptr)
  br i1 %exact, label %array, label %no
array:
  %y = call ptr inttoptr (i64 NEW_COPY to ptr)(ptr %x, i32 0)
  %lost = icmp eq ptr %y, null
  br i1 %lost, label %clear, label %made
made:
  %fits = call i1 @fits_array(ptr %y, ptr %dtype, i64 %axes, ptr %sizes)
  br i1 %fits, label %yes, label %drop
yes:
  ret ptr %y
drop:
  call void @Py_DecRef(ptr %y)
  br label %no
clear:                                              ; `prepare` words it
  call void @PyErr_Clear()
  br label %no
no:
  ret ptr null
}

; Let go of the arrays among `taken` that are copies of `given`, which take their places again.
define internal void @drop_copies(ptr %taken, ptr %given, i64 %count) #0 {
  br label %next
next:
  %i = phi i64 [0, %0], [%i1, %done]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %end
one:
  %i1 = add i64 %i, 1
  %at = getelementptr ptr, ptr %taken, i64 %i
  %x = load ptr, ptr %at
  %from = getelementptr ptr, ptr %given, i64 %i
  %own = load ptr, ptr %from
  %same = icmp eq ptr %x, %own
  br i1 %same, label %done, label %drop
drop:
  call void @Py_DecRef(ptr %x)
  store ptr %own, ptr %at
  br label %done
done:
  br label %next
end:
  ret void
}

; The kernel of a program for sizes, params and arrays for its results, which graphcore gives it.
define ptr @compute(ptr %self, ptr %args, i64 %count) #0 {
entry:
  %program.array = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %program = call ptr @data(ptr %program.array)
  %idle = call ptr @PyTuple_GetItem(ptr %self, i64 1)
  %params = call i64 @word(ptr %program, i64 0)
  %results = call i64 @word(ptr %program, i64 1)
  %shapes.at = call i64 @word(ptr %program, i64 3)
  %unknowns.at = call i64 @word(ptr %program, i64 4)
  %numbers.at = call i64 @word(ptr %program, i64 5)
  %table.at = call i64 @word(ptr %program, i64 6)
  %unknowns = sub i64 %numbers.at, %unknowns.at
  %axes = sub i64 %unknowns.at, %shapes.at
  %sizes = alloca i64, i64 %unknowns
  %shapes = alloca i64, i64 %axes
  %given.args = getelementptr ptr, ptr %args, i64 %unknowns
  %taken = alloca ptr, i64 %params
  %taken.bytes = shl i64 %params, 3
  %all.taken = call ptr @memcpy(ptr %taken, ptr %given.args, i64 %taken.bytes)
  br label %size
size:
  %u = phi i64 [0, %entry], [%u1, %known]
  %more.u = icmp slt i64 %u, %unknowns
  br i1 %more.u, label %known, label %search
known:
  %size.at = getelementptr ptr, ptr %args, i64 %u
  %size.object = load ptr, ptr %size.at
  %size.word = call i64 @PyLong_AsLongLong(ptr %size.object)
  %size.to = getelementptr i64, ptr %sizes, i64 %u
  store i64 %size.word, ptr %size.to
  %u1 = add i64 %u, 1
  br label %size
search:
  %both = add i64 %params, %results
  %left = call i64 @word(ptr %program, i64 7)
  %over = icmp slt i64 %left, 0
  br i1 %over, label %prepare, label %seek
seek:
  %found = call ptr @idle_for(ptr %idle, i64 %unknowns.at, i64 %unknowns, ptr %sizes)
  %none = icmp eq ptr %found, null
  br i1 %none, label %prepare, label %next
next:
  %i = phi i64 [0, %seek], [%i1, %good]
  %to = phi ptr [%shapes, %seek], [%beyond, %good]
  %more = icmp slt i64 %i, %both
  br i1 %more, label %one, label %compare
one:
  %pair = shl i64 %i, 1
  %dtype.at = add i64 %pair, 8
  %dtype.word = getelementptr i64, ptr %program, i64 %dtype.at
  %dtype = load ptr, ptr %dtype.word
  %ndim.at = add i64 %pair, 9
  %ndim = call i64 @word(ptr %program, i64 %ndim.at)
  %x.at = getelementptr ptr, ptr %given.args, i64 %i
  %x = load ptr, ptr %x.at
  %is.param = icmp slt i64 %i, %params
  br i1 %is.param, label %param, label %result
param:
  %fits.param = call i1 @fits(ptr %x, ptr %dtype, i64 %ndim, ptr %to)
  br i1 %fits.param, label %good, label %order
order:
  %copy = call ptr @row_major(ptr %x, ptr %dtype, i64 %ndim, ptr %to)
  %other = icmp eq ptr %copy, null
  br i1 %other, label %odd, label %copied
copied:
  %taken.at = getelementptr ptr, ptr %taken, i64 %i
  store ptr %copy, ptr %taken.at
  br label %good
result:
  %fits.result = call i1 @fits_array(ptr %x, ptr %dtype, i64 %ndim, ptr %to)
  br i1 %fits.result, label %good, label %odd
good:
  %i1 = add i64 %i, 1
  %beyond = getelementptr i64, ptr %to, i64 %ndim
  br label %next
compare:
  %found.words = call ptr @data(ptr %found)
  %its = getelementptr i64, ptr %found.words, i64 %shapes.at
  %bytes = shl i64 %axes, 3
  %apart = call i32 @memcmp(ptr %its, ptr %shapes, i64 %bytes)
  %equal = icmp eq i32 %apart, 0
  br i1 %equal, label %begin, label %odd
odd:                                                ; `prepare` finds it in the list again
  call void @drop_copies(ptr %taken, ptr %given.args, i64 %params)
  %back = call i32 @PyList_Append(ptr %idle, ptr %found)
  call void @Py_DecRef(ptr %found)
  br label %prepare
prepare:
  %prepare.f = call ptr @PyTuple_GetItem(ptr %self, i64 2)
  %given = call ptr @PyObject_Vectorcall(ptr %prepare.f, ptr %args, i64 %count, ptr null)
  %refused = icmp eq ptr %given, null
  br i1 %refused, label %raise, label %prepared
prepared:
  %made = call ptr @PyTuple_GetItem(ptr %given, i64 0)
  call void @Py_IncRef(ptr %made)
  br label %begin
begin:
  %space = phi ptr [%found, %compare], [%made, %prepared]
  %held = phi ptr [null, %compare], [%given, %prepared]
  %words = call ptr @data(ptr %space)
  call void @give_params(ptr %program, ptr %words, ptr %taken, ptr %held)
  %table = getelementptr ptr, ptr %words, i64 %table.at
  br label %place
place:
  %r = phi i64 [%params, %begin], [%r1, %entered]
  %more.r = icmp slt i64 %r, %both
  br i1 %more.r, label %entered, label %go
entered:
  %y.at = getelementptr ptr, ptr %given.args, i64 %r
  %y = load ptr, ptr %y.at
  %y.data = call ptr @data(ptr %y)
  %slot = getelementptr ptr, ptr %table, i64 %r
  store ptr %y.data, ptr %slot
  %r1 = add i64 %r, 1
  br label %place
go:
  %status = call i64 @run(ptr %self, ptr %space, ptr %program, ptr %words)
  switch i64 %status, label %stopped [ i64 0, label %fine
                                       i64 1, label %failed ]
fine:
  call void @Py_IncRef(ptr inttoptr (i64 NONE to ptr))
  br label %end
failed:
  %failed.f = call ptr @PyTuple_GetItem(ptr %self, i64 3)
  %never = call ptr @PyObject_CallOneArg(ptr %failed.f, ptr %space)
  br label %stopped
stopped:
  br label %end
end:
  %value = phi ptr [inttoptr (i64 NONE to ptr), %fine], [null, %stopped]
  call void @drop_copies(ptr %taken, ptr %given.args, i64 %params)
  %kept = call i32 @PyList_Append(ptr %idle, ptr %space)
  call void @Py_DecRef(ptr %space)
  %direct = icmp eq ptr %held, null
  br i1 %direct, label %return, label %release
release:
  call void @Py_DecRef(ptr %held)
  br label %return
return:
  ret ptr %value
raise:
  ret ptr null
}
