; Threads that run the steps of long loops together with the thread that has called the kernel.
; Words in capitals are put in before the text is compiled.
;
; One loop at a time is shared: who finds the threads in use runs all steps of its loop itself. The
; others, here called workers, are made at the first shared loop, and sleep between two loops. They
; never touch Python. Steps are handed out in order, some at a time (a piece); the caller looks for
; signals between two pieces, and within long ones. Each worker has memory of its own, for the record
; of a failure and for what the loop computes along the way. Before its record stand the words of a
; workspace (entrance.ll) that `poll` reads: as a thread that gave up the GIL it has -1, and where the
; prints wait, the address of what `poll` is to say.
;
; A fork copies the forking thread alone. Before it the workers end, so that no piece of a loop that
; this thread shares is lost in the child. Later loops make new ones.

@workers = global i64 0                             ; how many there are
@taken = global i32 0                               ; whether a loop is shared now
@owner = global i64 0                               ; by which thread
@forking = global i32 0                             ; whether it does not share a loop, but forks
@possible = global i64 9223372036854775807          ; how many workers the system gives
@ending = global i32 0                              ; whether workers are to end
@turn = global i32 0                                ; counts the loops: workers sleep until it changes
@open = global i32 0                                ; whether workers may take pieces of the loop
@active = global i64 0                              ; workers that look at the loop
@asleep = global i32 0                              ; workers that have to be woken
@closed = global i32 0                              ; whether Python ends
@shared = global i64 0                              ; how many loops have been shared, for tests
@loop = global ptr null

; A loop: 0 its part, 1 table, 2 sizes, 3 frame, 4 record, 5 how many steps, 6 in how many pieces,
; 7 bytes of each thread's own memory, 8 words of a record, 9 the next piece, 10 the least piece that
; has failed, 11 for how many workers there is a place, 12 whether a failure is being noted, 13 how
; floats are rounded (MXCSR), 14 the record of the least failure, 15 STOPPED once `poll` has said so.
%loop = type { ptr, ptr, ptr, ptr, ptr, i64, i64, i64, i64, i64, i64, i64, i32, i32, ptr, i64 }

declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i64 @pthread_self()
declare i64 @syscall(i64, ...)
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @sched_yield()
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @PyEval_SaveThread()
declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

; Wait until a number of workers is 0.
define internal void @wait_for_none(ptr %number) #0 {
entry:
  br label %look
look:
  %n = phi i64 [0, %entry], [%n1, %pause], [0, %yield]
  %many = load atomic i64, ptr %number seq_cst, align 8
  %none = icmp eq i64 %many, 0
  br i1 %none, label %end, label %pause
pause:
  call void @llvm.x86.sse2.pause()
  %n1 = add i64 %n, 1
  %long = icmp sgt i64 %n1, 2000
  br i1 %long, label %yield, label %look
yield:
  %given = call i32 @sched_yield()
  br label %look
end:
  ret void
}

; Let workers take no more pieces, and wait until they have run those that they have.
define internal void @quiet() #0 {
  store atomic i32 0, ptr @open seq_cst, align 4
  call void @wait_for_none(ptr @active)
  ret void
}

; Wake all workers.
define internal void @wake() #0 {
entry:
  %turn = atomicrmw add ptr @turn, i32 1 seq_cst
  %asleep = load atomic i32, ptr @asleep seq_cst, align 4
  %none = icmp eq i32 %asleep, 0
  br i1 %none, label %end, label %wake
wake:
  %woken = call i64 (i64, ...) @syscall(i64 202, ptr @turn, i32 129, i32 2147483647)  ; futex: wake
  br label %end
end:
  ret void
}

; Note that a piece has failed, as a record says, unless an earlier one has.
define internal void @note(ptr %loop, i64 %piece, ptr %record) #0 {
entry:
  %lock = getelementptr %loop, ptr %loop, i64 0, i32 12
  br label %try
try:
  %got = cmpxchg ptr %lock, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %got, 1
  br i1 %mine, label %compare, label %pause
pause:
  call void @llvm.x86.sse2.pause()
  br label %try
compare:
  %failed.at = getelementptr %loop, ptr %loop, i64 0, i32 10
  %failed = load i64, ptr %failed.at
  %earlier = icmp slt i64 %piece, %failed
  br i1 %earlier, label %write, label %leave
write:
  store i64 %piece, ptr %failed.at
  %to.at = getelementptr %loop, ptr %loop, i64 0, i32 14
  %to = load ptr, ptr %to.at
  %words.at = getelementptr %loop, ptr %loop, i64 0, i32 8
  %words = load i64, ptr %words.at
  %bytes = shl i64 %words, 3
  %copied = call ptr @memcpy(ptr %to, ptr %record, i64 %bytes)
  br label %leave
leave:
  store atomic i32 0, ptr %lock seq_cst, align 4
  ret void
}

; Run pieces of a loop until there are none: 0, or STOPPED where `poll` says so. Pieces are taken in
; order, so those before one that fails are run to their ends. The caller has no `own` memory.
define internal i64 @take(ptr %loop, ptr %record, ptr %own) #0 {
entry:
  %part.at = getelementptr %loop, ptr %loop, i64 0, i32 0
  %part = load ptr, ptr %part.at
  %table.at = getelementptr %loop, ptr %loop, i64 0, i32 1
  %table = load ptr, ptr %table.at
  %sizes.at = getelementptr %loop, ptr %loop, i64 0, i32 2
  %sizes = load ptr, ptr %sizes.at
  %frame.at = getelementptr %loop, ptr %loop, i64 0, i32 3
  %frame = load ptr, ptr %frame.at
  %steps.at = getelementptr %loop, ptr %loop, i64 0, i32 5
  %steps = load i64, ptr %steps.at
  %pieces.at = getelementptr %loop, ptr %loop, i64 0, i32 6
  %pieces = load i64, ptr %pieces.at
  %next = getelementptr %loop, ptr %loop, i64 0, i32 9
  %worker = icmp ne ptr %own, null
  br label %again
again:
  br i1 %worker, label %ask, label %one
ask:
  %open = load atomic i32, ptr @open seq_cst, align 4
  %shut = icmp eq i32 %open, 0
  br i1 %shut, label %end, label %one
one:
  %piece = atomicrmw add ptr %next, i64 1 seq_cst
  %more = icmp slt i64 %piece, %pieces
  br i1 %more, label %run, label %end
run:
  %piece1 = add i64 %piece, 1
  %a = mul i64 %piece, %steps
  %b = mul i64 %piece1, %steps
  %from = udiv i64 %a, %pieces
  %to = udiv i64 %b, %pieces
  %status = call i64 %part(ptr %table, ptr %sizes, ptr %record, ptr %frame, ptr %own, i64 %from, i64 %to)
  switch i64 %status, label %stop [ i64 0, label %done
                                    i64 1, label %failed ]
failed:
  call void @note(ptr %loop, i64 %piece, ptr %record)
  store atomic i64 %pieces, ptr %next seq_cst, align 8
  br label %done
done:
  br i1 %worker, label %again, label %look
look:
  %told = call i64 inttoptr (i64 POLL to ptr)(ptr %record)
  %on = icmp eq i64 %told, 0
  br i1 %on, label %again, label %stop
stop:
  %flag = getelementptr %loop, ptr %loop, i64 0, i32 15
  store atomic i64 STOPPED, ptr %flag seq_cst, align 8
  store atomic i64 %pieces, ptr %next seq_cst, align 8
  ret i64 STOPPED
end:
  ret i64 0
}

; Wait until the workers have run their pieces, and look for signals meanwhile: STOPPED if that has
; been said before, or is now.
define internal i64 @wait_for_all(ptr %loop, ptr %record, i64 %before) #0 {
entry:
  %flag = getelementptr %loop, ptr %loop, i64 0, i32 15
  store atomic i32 0, ptr @open seq_cst, align 4
  br label %look
look:
  %said = phi i64 [%before, %entry], [%said, %pause], [%said, %yield], [%told, %poll]
  %n = phi i64 [0, %entry], [%n1, %pause], [0, %yield], [0, %poll]
  %active = load atomic i64, ptr @active seq_cst, align 8
  %none = icmp eq i64 %active, 0
  br i1 %none, label %end, label %pause
pause:
  call void @llvm.x86.sse2.pause()
  %n1 = add i64 %n, 1
  %long = icmp sgt i64 %n1, 2000
  br i1 %long, label %yield, label %look
yield:
  %given = call i32 @sched_yield()
  %on = icmp eq i64 %said, 0
  br i1 %on, label %poll, label %look
poll:
  %told = call i64 inttoptr (i64 POLL to ptr)(ptr %record)
  store atomic i64 %told, ptr %flag seq_cst, align 8
  br label %look
end:
  ret i64 %said
}

; A worker. It waits for a short time before it sleeps.
define internal ptr @work(ptr %given) #0 {
entry:
  %first = ptrtoint ptr %given to i64
  %turn.first = trunc i64 %first to i32
  br label %wait
wait:
  %turn = phi i32 [%turn.first, %entry], [%turn.now, %leave]
  %block = phi ptr [null, %entry], [%block.now, %leave]
  %bytes = phi i64 [0, %entry], [%bytes.now, %leave]
  br label %look
look:
  %n = phi i64 [0, %wait], [%n1, %pause], [0, %slept]
  %turn.now = load atomic i32, ptr @turn seq_cst, align 4
  %same = icmp eq i32 %turn.now, %turn
  br i1 %same, label %pause, label %enter
pause:
  call void @llvm.x86.sse2.pause()
  %n1 = add i64 %n, 1
  %long = icmp sgt i64 %n1, PAUSES
  br i1 %long, label %sleep, label %look
sleep:
  %before = atomicrmw add ptr @asleep, i32 1 seq_cst
  %ended = call i64 (i64, ...) @syscall(i64 202, ptr @turn, i32 128, i32 %turn, ptr null)  ; futex: wait
  br label %slept
slept:
  %after = atomicrmw sub ptr @asleep, i32 1 seq_cst
  br label %look
enter:
  %ending = load atomic i32, ptr @ending seq_cst, align 4
  %ends = icmp ne i32 %ending, 0
  br i1 %ends, label %end, label %count
count:
  %many = atomicrmw add ptr @active, i64 1 seq_cst
  %open = load atomic i32, ptr @open seq_cst, align 4
  %shut = icmp eq i32 %open, 0
  br i1 %shut, label %leave, label %join
join:
  %loop = load ptr, ptr @loop
  %places = getelementptr %loop, ptr %loop, i64 0, i32 11
  %place = atomicrmw sub ptr %places, i64 1 seq_cst
  %full = icmp sle i64 %place, 0
  br i1 %full, label %leave, label %measure
measure:
  %own.at = getelementptr %loop, ptr %loop, i64 0, i32 7
  %own.bytes = load i64, ptr %own.at
  %words.at = getelementptr %loop, ptr %loop, i64 0, i32 8
  %words = load i64, ptr %words.at
  %record.bytes = shl i64 %words, 3
  %record.more = add i64 %record.bytes, 127         ; with the words before it
  %record.whole = and i64 %record.more, -64
  %needed = add i64 %own.bytes, %record.whole
  %enough = icmp ule i64 %needed, %bytes
  br i1 %enough, label %run, label %drop
drop:
  %empty = icmp eq i64 %bytes, 0
  br i1 %empty, label %get, label %free
free:
  %freed = call i32 @munmap(ptr %block, i64 %bytes)
  br label %get
get:
  %new = call ptr @mmap(ptr null, i64 %needed, i32 3, i32 34, i32 -1, i64 0)
  %lost = icmp eq ptr %new, inttoptr (i64 -1 to ptr)
  br i1 %lost, label %leave, label %run             ; the others run its pieces
run:
  %memory = phi ptr [%block, %measure], [%new, %get]
  %memory.bytes = phi i64 [%bytes, %measure], [%needed, %get]
  %own = getelementptr i8, ptr %memory, i64 %record.whole
  %record = getelementptr i64, ptr %memory, i64 8
  %holder = getelementptr i64, ptr %record, i64 -1
  store i64 -1, ptr %holder
  %due = getelementptr i64, ptr %record, i64 -2
  store i64 0, ptr %due
  %fuel = getelementptr i64, ptr %record, i64 -3
  store i64 TANK, ptr %fuel
  %said = getelementptr i64, ptr %record, i64 -4
  %flag = getelementptr %loop, ptr %loop, i64 0, i32 15
  store ptr %flag, ptr %said
  %rounding = getelementptr %loop, ptr %loop, i64 0, i32 13
  call void @llvm.x86.sse.ldmxcsr(ptr %rounding)
  %told = call i64 @take(ptr %loop, ptr %record, ptr %own)
  br label %leave
leave:
  %block.now = phi ptr [%block, %count], [%block, %join], [null, %get], [%memory, %run]
  %bytes.now = phi i64 [%bytes, %count], [%bytes, %join], [0, %get], [%memory.bytes, %run]
  %left = atomicrmw sub ptr @active, i64 1 seq_cst
  br label %wait
end:
  %idle = icmp eq i64 %bytes, 0
  br i1 %idle, label %last, label %give
give:
  %given.back = call i32 @munmap(ptr %block, i64 %bytes)
  br label %last
last:
  %others = atomicrmw sub ptr @workers, i64 1 seq_cst
  ret ptr null
}

; Let all workers end, and wait for that. The thread that asks owns them.
define internal void @dismiss() #0 {
  call void @quiet()
  store atomic i32 1, ptr @ending seq_cst, align 4
  call void @wake()
  call void @wait_for_none(ptr @workers)
  store atomic i32 0, ptr @ending seq_cst, align 4
  ret void
}

; Make workers until there are so many. They get no signals. Where the system gives no more, half as
; many are left, so that there is memory for others.
define internal void @recruit(i64 %most) #0 {
entry:
  %possible = load i64, ptr @possible
  %wanted = call i64 @llvm.umin.i64(i64 %most, i64 %possible)
  %have.now = load atomic i64, ptr @workers seq_cst, align 8
  %enough = icmp sge i64 %have.now, %wanted
  br i1 %enough, label %end, label %begin
begin:
  %all = alloca [16 x i64]
  %old = alloca [16 x i64]
  %attributes = alloca [16 x i64]
  %id = alloca i64
  br label %fill
fill:
  %n = phi i64 [0, %begin], [%n1, %fill]
  %at = getelementptr i64, ptr %all, i64 %n
  store i64 -1, ptr %at
  %n1 = add i64 %n, 1
  %filled = icmp eq i64 %n1, 16
  br i1 %filled, label %mask, label %fill
mask:
  %blocked = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  %begun = call i32 @pthread_attr_init(ptr %attributes)
  %sized = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 STACK)
  %detached = call i32 @pthread_attr_setdetachstate(ptr %attributes, i32 1)
  br label %next
next:
  %have = load atomic i64, ptr @workers seq_cst, align 8
  %lacks = icmp slt i64 %have, %wanted
  br i1 %lacks, label %one, label %done
one:
  %turn = load atomic i32, ptr @turn seq_cst, align 4
  %turn.wide = zext i32 %turn to i64
  %given = inttoptr i64 %turn.wide to ptr
  %refused = call i32 @pthread_create(ptr %id, ptr %attributes, ptr @work, ptr %given)
  %none = icmp ne i32 %refused, 0
  br i1 %none, label %refuse, label %made
refuse:
  %half = lshr i64 %have, 1
  store i64 %half, ptr @possible
  call void @dismiss()
  br label %done
made:
  %more = atomicrmw add ptr @workers, i64 1 seq_cst
  br label %next
done:
  %destroyed = call i32 @pthread_attr_destroy(ptr %attributes)
  %restored = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  br label %end
end:
  ret void
}

; All steps of a loop, which compute `total` values, by several threads if that is at least so much:
; 0, 1 after a failure, or STOPPED.
define i64 @share(ptr %part, ptr %table, ptr %sizes, ptr %record, ptr %frame, ptr %words.at, i64 %steps, i64 %total, i64 %least, i64 %own) #0 {
entry:
  %empty = icmp sle i64 %steps, 0
  br i1 %empty, label %nothing, label %some
nothing:
  ret i64 0
some:
  %small = icmp slt i64 %total, %least
  br i1 %small, label %direct, label %large
direct:
  %status = call i64 %part(ptr %table, ptr %sizes, ptr %record, ptr %frame, ptr null, i64 0, i64 %steps)
  ret i64 %status
large:
  %threads = load i64, ptr inttoptr (i64 THREADS to ptr)
  %whole = udiv i64 %total, MOST
  %one.thread = icmp sle i64 %threads, 1
  %one.step = icmp eq i64 %steps, 1
  %single = or i1 %one.thread, %one.step
  br i1 %single, label %alone, label %ask
ask:
  %closed = load atomic i32, ptr @closed seq_cst, align 4
  %ends = icmp ne i32 %closed, 0
  br i1 %ends, label %alone, label %try
try:
  %got = cmpxchg ptr @taken, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %got, 1
  br i1 %mine, label %prepare, label %alone

alone:
  %few = call i64 @llvm.umin.i64(i64 %whole, i64 %steps)
  %blocks = call i64 @llvm.umax.i64(i64 %few, i64 1)
  br label %block
block:
  %c = phi i64 [0, %alone], [%c1, %looked]
  %c1 = add i64 %c, 1
  %a = mul i64 %c, %steps
  %b = mul i64 %c1, %steps
  %from = udiv i64 %a, %blocks
  %to = udiv i64 %b, %blocks
  %how = call i64 %part(ptr %table, ptr %sizes, ptr %record, ptr %frame, ptr null, i64 %from, i64 %to)
  %failed = icmp ne i64 %how, 0
  br i1 %failed, label %leave, label %look
look:
  %heard = call i64 inttoptr (i64 POLL to ptr)(ptr %record)
  %stopped = icmp ne i64 %heard, 0
  br i1 %stopped, label %leave, label %looked
looked:
  %over = icmp eq i64 %c1, %blocks
  br i1 %over, label %nothing, label %block
leave:
  %result = phi i64 [%how, %block], [%heard, %look]
  ret i64 %result

prepare:
  %self = call i64 @pthread_self()
  store atomic i64 %self, ptr @owner seq_cst, align 8
  %holder = getelementptr i64, ptr %record, i64 -1  ; as in entrance.ll
  %thread = load ptr, ptr %holder
  %free = icmp ne ptr %thread, null
  br i1 %free, label %count, label %release
release:                                            ; so that nobody waits for Python while we wait
  %saved = call ptr @PyEval_SaveThread()
  store ptr %saved, ptr %holder
  br label %count
count:
  %others = sub i64 %threads, 1
  call void @recruit(i64 %others)
  %fewest = mul i64 %threads, PIECES
  %goal = call i64 @llvm.umax.i64(i64 %fewest, i64 %whole)
  %parts = mul i64 %total, PARTS
  %fit = udiv i64 %parts, %least
  %most = call i64 @llvm.umin.i64(i64 %goal, i64 %fit)
  %limit = call i64 @llvm.umin.i64(i64 %most, i64 %steps)
  %pieces = call i64 @llvm.umax.i64(i64 %limit, i64 1)
  %words = load i64, ptr %words.at
  %least.record = alloca i64, i64 %words
  %loop = alloca %loop, align 64
  %loop.0 = getelementptr %loop, ptr %loop, i64 0, i32 0
  store ptr %part, ptr %loop.0
  %loop.1 = getelementptr %loop, ptr %loop, i64 0, i32 1
  store ptr %table, ptr %loop.1
  %loop.2 = getelementptr %loop, ptr %loop, i64 0, i32 2
  store ptr %sizes, ptr %loop.2
  %loop.3 = getelementptr %loop, ptr %loop, i64 0, i32 3
  store ptr %frame, ptr %loop.3
  %loop.4 = getelementptr %loop, ptr %loop, i64 0, i32 4
  store ptr %record, ptr %loop.4
  %loop.5 = getelementptr %loop, ptr %loop, i64 0, i32 5
  store i64 %steps, ptr %loop.5
  %loop.6 = getelementptr %loop, ptr %loop, i64 0, i32 6
  store i64 %pieces, ptr %loop.6
  %loop.7 = getelementptr %loop, ptr %loop, i64 0, i32 7
  store i64 %own, ptr %loop.7
  %loop.8 = getelementptr %loop, ptr %loop, i64 0, i32 8
  store i64 %words, ptr %loop.8
  %loop.9 = getelementptr %loop, ptr %loop, i64 0, i32 9
  store i64 0, ptr %loop.9
  %loop.10 = getelementptr %loop, ptr %loop, i64 0, i32 10
  store i64 %pieces, ptr %loop.10
  %loop.11 = getelementptr %loop, ptr %loop, i64 0, i32 11
  store i64 %others, ptr %loop.11
  %loop.12 = getelementptr %loop, ptr %loop, i64 0, i32 12
  store i32 0, ptr %loop.12
  %loop.13 = getelementptr %loop, ptr %loop, i64 0, i32 13
  call void @llvm.x86.sse.stmxcsr(ptr %loop.13)
  %loop.14 = getelementptr %loop, ptr %loop, i64 0, i32 14
  store ptr %least.record, ptr %loop.14
  %loop.15 = getelementptr %loop, ptr %loop, i64 0, i32 15
  store i64 0, ptr %loop.15
  store ptr %loop, ptr @loop
  %counted = atomicrmw add ptr @shared, i64 1 seq_cst
  store atomic i32 1, ptr @open seq_cst, align 4
  call void @wake()
  %ended = call i64 @take(ptr %loop, ptr %record, ptr null)
  %told = call i64 @wait_for_all(ptr %loop, ptr %record, i64 %ended)
  %first = load i64, ptr %loop.10
  %wrong = icmp slt i64 %first, %pieces
  %wrong.wide = zext i1 %wrong to i64
  br i1 %wrong, label %tell, label %free.all
tell:
  %words.bytes = shl i64 %words, 3
  %copied = call ptr @memcpy(ptr %record, ptr %least.record, i64 %words.bytes)
  br label %free.all
free.all:
  store atomic i64 0, ptr @owner seq_cst, align 8
  store atomic i32 0, ptr @taken seq_cst, align 4
  %on = icmp eq i64 %told, 0
  %found = select i1 %on, i64 %wrong.wide, i64 %told
  ret i64 %found
}

; Take the workers for the thread that asks, unless a loop of another thread is shared: whether it
; has them now.
define internal i1 @own() #0 {
entry:
  %self = call i64 @pthread_self()
  %owner = load atomic i64, ptr @owner seq_cst, align 8
  %shares = icmp eq i64 %self, %owner
  br i1 %shares, label %end, label %try
try:
  %got = cmpxchg ptr @taken, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %got, 1
  br i1 %mine, label %note, label %end
note:
  store atomic i64 %self, ptr @owner seq_cst, align 8
  store i32 1, ptr @forking
  br label %end
end:
  %has = phi i1 [true, %entry], [%mine, %try], [true, %note]
  ret i1 %has
}

; Give the workers back, unless this thread shares a loop: whether it had them.
define internal i1 @disown() #0 {
entry:
  %self = call i64 @pthread_self()
  %owner = load atomic i64, ptr @owner seq_cst, align 8
  %had = icmp eq i64 %self, %owner
  br i1 %had, label %ask, label %end
ask:
  %forking = load i32, ptr @forking
  %shares = icmp eq i32 %forking, 0
  br i1 %shares, label %end, label %free
free:
  store i32 0, ptr @forking
  store atomic i64 0, ptr @owner seq_cst, align 8
  store atomic i32 0, ptr @taken seq_cst, align 4
  br label %end
end:
  ret i1 %had
}

; Before a fork, in the thread that forks: the workers end. Those of another thread's loop do not.
define void @before_fork() #0 {
  %has = call i1 @own()
  br i1 %has, label %dismiss, label %end
dismiss:
  call void @dismiss()
  br label %end
end:
  ret void
}

; After a fork, in the thread that has forked.
define void @after_in_parent() #0 {
  %had = call i1 @disown()
  ret void
}

; The same in the child, which has no other thread.
define void @after_in_child() #0 {
  store i64 0, ptr @workers
  store i64 0, ptr @active
  store i32 0, ptr @asleep
  store i32 0, ptr @open
  store i32 0, ptr @ending
  %had = call i1 @disown()
  br i1 %had, label %end, label %reset
reset:
  store i32 0, ptr @forking
  store i64 0, ptr @owner
  store i32 0, ptr @taken
  br label %end
end:
  ret void
}

; Python ends: no loop is shared from now on.
define void @close() #0 {
  store atomic i32 1, ptr @closed seq_cst, align 4
  call void @quiet()
  ret void
}
