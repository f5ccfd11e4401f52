; The entrance of every program: one function of Python's C-API, and what loops ask meanwhile.
; Words in capitals, mostly addresses of this process, are put in before the text is compiled.
;
; A program is the tuple that the function is bound to:
;   0  words (below) as an int64 array    2  prepare(*arguments) -> (workspace, *arrays), or raises
;   1  the list of idle workspaces        3  failed(workspace): raises what the kernel recorded
;                                         4  show(workspace): shows what the kernel has printed
;                                         5  results(workspace): new arrays, some of them large
;
; Words of a program:
;   0  how many params                    4  where the unknown sizes begin
;   1  how many results                   5  where the numbers of params begin
;   2  how many axes the params have      6  where the table begins
;   3  where the sizes of its params begin in a workspace
;   7  how long calls may still take until better code is made
;   8  for each param, then for each result: its dtype, the number of its axes
;
; Words of a workspace, an int64 array:
;   0  the address of the kernel          6  how many bytes of prints wait to be shown
;   1  how long the last call took        7  how much work is left until `poll`
;   2  whether some results are large     8  when to look for signals next
;   3  the program, as a tuple            9  the thread that gave up the GIL
;   4  the workspace itself, as an array  10 the record of a failure, and so on as the program says;
;   5  the address of the prints             after the sizes of the params those of the results
; Times are in ticks of the processor, work in values about.
;
; Kernels put what is printed into a buffer, which is shown where it is full, at looks for signals
; and after the kernel. A print in it is the number of its slot in the table, the address of its
; values or 0 if they follow, the sizes of its axes, and the values. Larger ones than the buffer are
; shown at once, from where they are.

@long = global i64 0                                ; from what time on a call gives up the GIL
@period = global i64 0                              ; how often signals are looked for

%array = type { [16 x i8], ptr, i32, ptr, ptr, ptr, ptr, i32 }  ; PyArrayObject_fields of NumPy 2
%object = type { i64, ptr }                                     ; PyObject: references, type

declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare i32 @PyList_SetSlice(ptr, i64, i64, ptr)
declare i32 @PyList_Append(ptr, ptr)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_CallOneArg(ptr, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare void @PyErr_Clear()
declare i32 @PyErr_ExceptionMatches(ptr)
declare i32 @PyErr_CheckSignals()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i64 @llvm.readcyclecounter()
declare i32 @memcmp(ptr, ptr, i64)
declare ptr @memcpy(ptr, ptr, i64)

; The data of an array.
define internal ptr @data(ptr %x) #0 {
  %p = getelementptr %array, ptr %x, i64 0, i32 1
  %data = load ptr, ptr %p
  ret ptr %data
}

; A word of a program or of a workspace.
define internal i64 @word(ptr %words, i64 %at) #0 {
  %p = getelementptr i64, ptr %words, i64 %at
  %word = load i64, ptr %p
  ret i64 %word
}

; Whether an argument is a row-major array of a dtype and number of axes.
define internal i1 @is_array(ptr %x, ptr %dtype, i32 %axes) #0 {
  %type.at = getelementptr %object, ptr %x, i64 0, i32 1
  %type = load ptr, ptr %type.at
  %exact = icmp eq ptr %type, inttoptr (i64 NDARRAY to ptr)
  br i1 %exact, label %array, label %no
array:
  %dtype.at = getelementptr %array, ptr %x, i64 0, i32 6
  %its.dtype = load ptr, ptr %dtype.at
  %axes.at = getelementptr %array, ptr %x, i64 0, i32 2
  %its.axes = load i32, ptr %axes.at
  %flags.at = getelementptr %array, ptr %x, i64 0, i32 7
  %flags = load i32, ptr %flags.at
  %needed = and i32 %flags, 257                     ; row-major and aligned
  %a = icmp eq ptr %its.dtype, %dtype
  %b = icmp eq i32 %its.axes, %axes
  %c = icmp eq i32 %needed, 257
  %ab = and i1 %a, %b
  %abc = and i1 %ab, %c
  ret i1 %abc
no:
  ret i1 false
}

; Whether an argument is a Python float, or NumPy's that is one.
define internal i1 @is_float(ptr %x) #0 {
  %type.at = getelementptr %object, ptr %x, i64 0, i32 1
  %type = load ptr, ptr %type.at
  %a = icmp eq ptr %type, inttoptr (i64 FLOAT to ptr)
  %b = icmp eq ptr %type, inttoptr (i64 FLOAT64 to ptr)
  %either = or i1 %a, %b
  ret i1 %either
}

; Whether an argument is a row-major array as `is_array` says; its sizes are written to `sizes`.
define internal i1 @fits_array(ptr %x, ptr %dtype, i64 %axes, ptr %sizes) #0 {
  %axes32 = trunc i64 %axes to i32
  %array = call i1 @is_array(ptr %x, ptr %dtype, i32 %axes32)
  br i1 %array, label %measure, label %no
measure:
  %shape.at = getelementptr %array, ptr %x, i64 0, i32 3
  %shape = load ptr, ptr %shape.at
  br label %next
next:
  %i = phi i64 [0, %measure], [%i1, %one]
  %more = icmp slt i64 %i, %axes
  br i1 %more, label %one, label %yes
one:
  %size = call i64 @word(ptr %shape, i64 %i)
  %to = getelementptr i64, ptr %sizes, i64 %i
  store i64 %size, ptr %to
  %i1 = add i64 %i, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether an argument is what a param takes as it is; its sizes are written to `sizes`.
define internal i1 @fits(ptr %x, ptr %dtype, i64 %axes, ptr %sizes) #0 {
  %array = call i1 @fits_array(ptr %x, ptr %dtype, i64 %axes, ptr %sizes)
  br i1 %array, label %yes, label %number
yes:
  ret i1 true
number:
  %float = call i1 @is_float(ptr %x)
  %double = icmp eq ptr %dtype, inttoptr (i64 DOUBLE to ptr)
  %scalar = icmp eq i64 %axes, 0
  %fd = and i1 %float, %double
  %fds = and i1 %fd, %scalar
  ret i1 %fds
}

; An idle workspace with these sizes from word `at` on, taken from the list, or null.
define internal ptr @idle_for(ptr %list, i64 %at, i64 %sizes.count, ptr %sizes) #0 {
  %bytes = shl i64 %sizes.count, 3
  %count = call i64 @PyList_Size(ptr %list)
  br label %next
next:
  %n = phi i64 [%count, %0], [%i, %other]
  %more = icmp sgt i64 %n, 0
  br i1 %more, label %one, label %none
one:
  %i = sub i64 %n, 1
  %space = call ptr @PyList_GetItem(ptr %list, i64 %i)
  %words = call ptr @data(ptr %space)
  %its = getelementptr i64, ptr %words, i64 %at
  %apart = call i32 @memcmp(ptr %its, ptr %sizes, i64 %bytes)
  %found = icmp eq i32 %apart, 0
  br i1 %found, label %take, label %other
other:
  br label %next
take:
  call void @Py_IncRef(ptr %space)
  %taken = call i32 @PyList_SetSlice(ptr %list, i64 %i, i64 %n, ptr null)
  ret ptr %space
none:
  ret ptr null
}

; The data of all params, into the table; a number is put into the workspace.
define internal void @give_params(ptr %program, ptr %words, ptr %args, ptr %given) #0 {
  %params = call i64 @word(ptr %program, i64 0)
  %table.at = call i64 @word(ptr %program, i64 6)
  %table = getelementptr i64, ptr %words, i64 %table.at
  %numbers.at = call i64 @word(ptr %program, i64 5)
  %numbers = getelementptr i64, ptr %words, i64 %numbers.at
  %prepared = icmp ne ptr %given, null
  br label %next
next:
  %i = phi i64 [0, %0], [%i1, %done]
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i, %params
  br i1 %more, label %one, label %end
one:
  %slot = getelementptr ptr, ptr %table, i64 %i
  br i1 %prepared, label %theirs, label %own
theirs:
  %x.theirs = call ptr @PyTuple_GetItem(ptr %given, i64 %i1)
  br label %kind
own:
  %x.at = getelementptr ptr, ptr %args, i64 %i
  %x.own = load ptr, ptr %x.at
  br label %kind
kind:
  %x = phi ptr [%x.theirs, %theirs], [%x.own, %own]
  %float = call i1 @is_float(ptr %x)
  br i1 %float, label %number, label %array
number:
  %buffer = getelementptr i64, ptr %numbers, i64 %i
  %value = call double @PyFloat_AsDouble(ptr %x)
  store double %value, ptr %buffer
  br label %done
array:
  %data = call ptr @data(ptr %x)
  br label %done
done:
  %from = phi ptr [%buffer, %number], [%data, %array]
  store ptr %from, ptr %slot
  br label %next
end:
  ret void
}

; New arrays for all results, whose data are entered in the table; null if there is no memory.
define internal ptr @new_results(ptr %self, ptr %space, ptr %program, ptr %words) #0 {
  %params = call i64 @word(ptr %program, i64 0)
  %results = call i64 @word(ptr %program, i64 1)
  %axes = call i64 @word(ptr %program, i64 2)
  %table.at = call i64 @word(ptr %program, i64 6)
  %table = getelementptr i64, ptr %words, i64 %table.at
  %first = getelementptr ptr, ptr %table, i64 %params
  %sizes.at = call i64 @word(ptr %program, i64 3)
  %after = add i64 %sizes.at, %axes
  %sizes = getelementptr i64, ptr %words, i64 %after
  %pairs = shl i64 %params, 1
  %skip = add i64 %pairs, 8
  %kinds = getelementptr i64, ptr %program, i64 %skip
  %large.word = call i64 @word(ptr %words, i64 2)
  %large = icmp ne i64 %large.word, 0
  br i1 %large, label %ask, label %new
ask:
  %results.f = call ptr @PyTuple_GetItem(ptr %self, i64 5)
  %given = call ptr @PyObject_CallOneArg(ptr %results.f, ptr %space)
  br label %begin
new:
  %empty = call ptr @PyList_New(i64 %results)
  br label %begin
begin:
  %list = phi ptr [%given, %ask], [%empty, %new]
  %failed = icmp eq ptr %list, null
  br i1 %failed, label %none, label %next
next:
  %i = phi i64 [0, %begin], [%i1, %made]
  %shape = phi ptr [%sizes, %begin], [%beyond, %made]
  %more = icmp slt i64 %i, %results
  br i1 %more, label %one, label %end
one:
  %pair = shl i64 %i, 1
  %dtype.word = getelementptr i64, ptr %kinds, i64 %pair
  %dtype = load ptr, ptr %dtype.word
  %ndim.at = add i64 %pair, 1
  %ndim = call i64 @word(ptr %kinds, i64 %ndim.at)
  br i1 %large, label %take, label %make
take:
  %y.given = call ptr @PyList_GetItem(ptr %list, i64 %i)
  br label %made
make:
  %ndim32 = trunc i64 %ndim to i32
  call void @Py_IncRef(ptr %dtype)                  ; the array takes this reference
  %y.new = call ptr inttoptr (i64 NEW_FROM_DESCR to ptr)(ptr inttoptr (i64 NDARRAY to ptr), ptr %dtype, i32 %ndim32, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  %lost = icmp eq ptr %y.new, null
  br i1 %lost, label %drop, label %enter
enter:
  %entered = call i32 @PyList_SetItem(ptr %list, i64 %i, ptr %y.new)
  br label %made
made:
  %y = phi ptr [%y.given, %take], [%y.new, %enter]
  %data = call ptr @data(ptr %y)
  %slot = getelementptr ptr, ptr %first, i64 %i
  store ptr %data, ptr %slot
  %i1 = add i64 %i, 1
  %beyond = getelementptr i64, ptr %shape, i64 %ndim
  br label %next
end:
  ret ptr %list
drop:
  call void @Py_DecRef(ptr %list)
  br label %none
none:
  ret ptr null
}

; Run the kernel, without the GIL where the last call took long: 0, or how it ended. `self` is the
; program as a tuple, `space` the workspace as an array.
define internal i64 @run(ptr %self, ptr %space, ptr %program, ptr %words) #0 {
  %kernel = load ptr, ptr %words
  %unknowns.at = call i64 @word(ptr %program, i64 4)
  %unknowns = getelementptr i64, ptr %words, i64 %unknowns.at
  %table.at = call i64 @word(ptr %program, i64 6)
  %table = getelementptr i64, ptr %words, i64 %table.at
  %self.at = getelementptr i64, ptr %words, i64 3
  store ptr %self, ptr %self.at
  %space.at = getelementptr i64, ptr %words, i64 4
  store ptr %space, ptr %space.at
  %waiting = getelementptr i64, ptr %words, i64 6
  store i64 0, ptr %waiting
  %fuel = getelementptr i64, ptr %words, i64 7
  store i64 TANK, ptr %fuel
  %due = getelementptr i64, ptr %words, i64 8
  %holder = getelementptr i64, ptr %words, i64 9
  store ptr null, ptr %holder
  %record = getelementptr i64, ptr %words, i64 10
  %took.at = getelementptr i64, ptr %words, i64 1
  %last = load i64, ptr %took.at
  %limit = load i64, ptr @long
  %long = icmp sgt i64 %last, %limit
  br i1 %long, label %release, label %start
release:
  %saved = call ptr @PyEval_SaveThread()
  store ptr %saved, ptr %holder
  br label %start
start:
  %begin = call i64 @llvm.readcyclecounter()
  %first = add i64 %begin, %limit
  store i64 %first, ptr %due
  %status = call i64 %kernel(ptr %table, ptr %unknowns, ptr %record)
  %now = call i64 @llvm.readcyclecounter()
  %took = sub i64 %now, %begin
  store i64 %took, ptr %took.at
  %thread = load ptr, ptr %holder
  %held = icmp eq ptr %thread, null
  br i1 %held, label %end, label %restore
restore:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %end
end:
  %left.at = getelementptr i64, ptr %program, i64 7
  %left = load i64, ptr %left.at
  %less = sub i64 %left, %took
  store i64 %less, ptr %left.at
  %stopped = icmp eq i64 %status, STOPPED
  br i1 %stopped, label %return, label %rest
rest:
  %shown = call i64 @show(ptr %record)
  %sound = icmp eq i64 %shown, 0
  %how = select i1 %sound, i64 %status, i64 STOPPED
  br label %return
return:
  %result = phi i64 [STOPPED, %end], [%how, %rest]
  ret i64 %result
}

; Show the prints that wait, if there are some, so that none is left: 0, or STOPPED after an
; exception. The GIL is held.
define internal i64 @show(ptr %record) #0 {
  %waiting.at = getelementptr i64, ptr %record, i64 -4
  %waiting = load i64, ptr %waiting.at
  %none = icmp eq i64 %waiting, 0
  br i1 %none, label %on, label %some
some:
  %self.at = getelementptr i64, ptr %record, i64 -7
  %self = load ptr, ptr %self.at
  %space.at = getelementptr i64, ptr %record, i64 -6
  %space = load ptr, ptr %space.at
  %show.f = call ptr @PyTuple_GetItem(ptr %self, i64 4)
  %none.object = call ptr @PyObject_CallOneArg(ptr %show.f, ptr %space)
  %raised = icmp eq ptr %none.object, null
  br i1 %raised, label %stop, label %drop
drop:
  call void @Py_DecRef(ptr %none.object)
  br label %on
on:
  ret i64 0
stop:
  ret i64 STOPPED
}

; The same, whether the GIL is held or not.
define internal i64 @show_now(ptr %record) #0 {
  %holder = getelementptr i64, ptr %record, i64 -1
  %thread = load ptr, ptr %holder
  %held = icmp eq ptr %thread, null
  br i1 %held, label %direct, label %restore
direct:
  %status = call i64 @show(ptr %record)
  ret i64 %status
restore:
  call void @PyEval_RestoreThread(ptr %thread)
  %shown = call i64 @show(ptr %record)
  %saved = call ptr @PyEval_SaveThread()
  store ptr %saved, ptr %holder
  ret i64 %shown
}

; A print in the buffer, but for its values, which are at an address or follow: where they do.
define internal ptr @begin_print(ptr %record, ptr %slot, i64 %axes, ptr %from) #0 {
  %waiting.at = getelementptr i64, ptr %record, i64 -4
  %waiting = load i64, ptr %waiting.at
  %prints.at = getelementptr i64, ptr %record, i64 -5
  %prints = load ptr, ptr %prints.at
  %to = getelementptr i8, ptr %prints, i64 %waiting
  %number = load i64, ptr %slot
  store i64 %number, ptr %to
  %from.to = getelementptr i64, ptr %to, i64 1
  store ptr %from, ptr %from.to
  %sizes = getelementptr i64, ptr %slot, i64 1
  %sizes.to = getelementptr i64, ptr %to, i64 2
  %bytes = shl i64 %axes, 3
  %all = call ptr @memcpy(ptr %sizes.to, ptr %sizes, i64 %bytes)
  %head = add i64 %bytes, 16
  %more = add i64 %waiting, %head
  store i64 %more, ptr %waiting.at
  %behind = getelementptr i8, ptr %to, i64 %head
  ret ptr %behind
}

; What kernels call to print values; behind the slot of a print are the sizes of its axes.
define i64 @print(ptr %record, ptr %slot, i64 %axes, ptr %values, i64 %bytes) #0 {
entry:
  %more = add i64 %bytes, 7
  %padded = and i64 %more, -8
  %axes.bytes = shl i64 %axes, 3
  %head = add i64 %axes.bytes, 16
  %needed = add i64 %head, %padded
  %waiting.at = getelementptr i64, ptr %record, i64 -4
  %waiting = load i64, ptr %waiting.at
  %end = add i64 %waiting, %needed
  %full = icmp ugt i64 %end, PRINTS
  br i1 %full, label %empty, label %copy
empty:
  %emptied = call i64 @show_now(ptr %record)
  %sound = icmp eq i64 %emptied, 0
  br i1 %sound, label %again, label %stop
again:
  %large = icmp ugt i64 %needed, PRINTS
  br i1 %large, label %refer, label %copy
refer:
  %nothing = call ptr @begin_print(ptr %record, ptr %slot, i64 %axes, ptr %values)
  %shown = call i64 @show_now(ptr %record)
  ret i64 %shown
copy:
  %to = call ptr @begin_print(ptr %record, ptr %slot, i64 %axes, ptr null)
  %copied = call ptr @memcpy(ptr %to, ptr %values, i64 %bytes)
  %before = load i64, ptr %waiting.at
  %after = add i64 %before, %padded
  store i64 %after, ptr %waiting.at
  ret i64 0
stop:
  ret i64 %emptied
}

; The time.
define i64 @ticks() #0 {
  %now = call i64 @llvm.readcyclecounter()
  ret i64 %now
}

; What loops call now and then: from time to time prints are shown and signal handlers run, which
; may raise (2).
; A call that proves long gives up the GIL.
define i64 @poll(ptr %record) #0 {
  %fuel = getelementptr i64, ptr %record, i64 -3
  store i64 TANK, ptr %fuel
  %due.at = getelementptr i64, ptr %record, i64 -2
  %due = load i64, ptr %due.at
  %now = call i64 @llvm.readcyclecounter()
  %early = icmp slt i64 %now, %due
  br i1 %early, label %on, label %look
look:
  %holder = getelementptr i64, ptr %record, i64 -1
  %thread = load ptr, ptr %holder
  %worker = icmp eq ptr %thread, inttoptr (i64 -1 to ptr)
  br i1 %worker, label %told, label %wait
told:                                               ; a thread that never touches Python
  %flag.at = getelementptr i64, ptr %record, i64 -4
  %flag = load ptr, ptr %flag.at
  %how = load atomic i64, ptr %flag seq_cst, align 8
  ret i64 %how
wait:
  %period = load i64, ptr @period
  %later = add i64 %now, %period
  store i64 %later, ptr %due.at
  %held = icmp eq ptr %thread, null
  br i1 %held, label %check, label %restore
restore:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %check
check:
  %shown = call i64 @show(ptr %record)
  %printed = icmp eq i64 %shown, 0
  br i1 %printed, label %ask, label %leave
ask:
  %raised = call i32 @PyErr_CheckSignals()
  br label %leave
leave:
  %wrong = phi i32 [1, %check], [%raised, %ask]
  %saved = call ptr @PyEval_SaveThread()
  store ptr %saved, ptr %holder
  %sound = icmp eq i32 %wrong, 0
  br i1 %sound, label %on, label %stop
on:
  ret i64 0
stop:
  ret i64 STOPPED
}

; The results of a program for these arguments, as a list.
define ptr @enter(ptr %self, ptr %args, i64 %count) #0 {
entry:
  %program.array = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %program = call ptr @data(ptr %program.array)
  %idle = call ptr @PyTuple_GetItem(ptr %self, i64 1)
  %axes = call i64 @word(ptr %program, i64 2)
  %sizes = alloca i64, i64 %axes
  %params = call i64 @word(ptr %program, i64 0)
  %all = icmp eq i64 %count, %params
  br i1 %all, label %next, label %prepare
next:
  %i = phi i64 [0, %entry], [%i1, %good]
  %to = phi ptr [%sizes, %entry], [%beyond, %good]
  %more = icmp slt i64 %i, %params
  br i1 %more, label %one, label %search
one:
  %pair = shl i64 %i, 1
  %dtype.at = add i64 %pair, 8
  %dtype.word = getelementptr i64, ptr %program, i64 %dtype.at
  %dtype = load ptr, ptr %dtype.word
  %ndim.at = add i64 %pair, 9
  %ndim = call i64 @word(ptr %program, i64 %ndim.at)
  %x.at = getelementptr ptr, ptr %args, i64 %i
  %x = load ptr, ptr %x.at
  %fits = call i1 @fits(ptr %x, ptr %dtype, i64 %ndim, ptr %to)
  br i1 %fits, label %good, label %prepare
good:
  %i1 = add i64 %i, 1
  %beyond = getelementptr i64, ptr %to, i64 %ndim
  br label %next
search:
  %left = call i64 @word(ptr %program, i64 7)
  %over = icmp slt i64 %left, 0
  br i1 %over, label %prepare, label %seek
seek:
  %shapes.at = call i64 @word(ptr %program, i64 3)
  %found = call ptr @idle_for(ptr %idle, i64 %shapes.at, i64 %axes, ptr %sizes)
  %none = icmp eq ptr %found, null
  br i1 %none, label %prepare, label %begin
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
  %space = phi ptr [%found, %seek], [%made, %prepared]
  %held = phi ptr [null, %seek], [%given, %prepared]
  %words = call ptr @data(ptr %space)
  %results = call ptr @new_results(ptr %self, ptr %space, ptr %program, ptr %words)
  %lost = icmp eq ptr %results, null
  br i1 %lost, label %full, label %go
full:                                               ; or a signal handler has raised
  %no.memory = call i32 @PyErr_ExceptionMatches(ptr inttoptr (i64 MEMORY_ERROR to ptr))
  %no.size = call i32 @PyErr_ExceptionMatches(ptr inttoptr (i64 VALUE_ERROR to ptr))
  %either = or i32 %no.memory, %no.size
  %raised = icmp eq i32 %either, 0
  br i1 %raised, label %stopped, label %word
word:
  call void @PyErr_Clear()                          ; `failed` words it
  %record = getelementptr i64, ptr %words, i64 10
  store i64 -1, ptr %record
  br label %failed
go:
  call void @give_params(ptr %program, ptr %words, ptr %args, ptr %held)
  %status = call i64 @run(ptr %self, ptr %space, ptr %program, ptr %words)
  switch i64 %status, label %stopped [ i64 0, label %end
                                       i64 1, label %failed ]
failed:
  %failed.f = call ptr @PyTuple_GetItem(ptr %self, i64 3)
  %never = call ptr @PyObject_CallOneArg(ptr %failed.f, ptr %space)
  br label %stopped
stopped:
  call void @Py_DecRef(ptr %results)                ; which may be null
  br label %end
end:
  %result = phi ptr [%results, %go], [null, %stopped]
  %kept = call i32 @PyList_Append(ptr %idle, ptr %space)
  call void @Py_DecRef(ptr %space)
  %direct = icmp eq ptr %held, null
  br i1 %direct, label %return, label %release
release:
  call void @Py_DecRef(ptr %held)
  br label %return
return:
  ret ptr %result
raise:
  ret ptr null
}
