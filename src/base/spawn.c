#include "base/spawn.h"

#include "base/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* From clone to exec the two processes run in the program's memory. They only make system calls and write to their stacks and
 * to struct spawn_setup. Interposed library functions (for example sigaction of a Java VM) are avoided where it matters. */
enum { STACK_BYTES = 64 * 1024, KERNEL_SIGNALS = 64 };

struct spawn_setup {
	const struct spawn *spawn;
	sigset_t unblocked;
	char *inner_stack; // upper end of the stack
	volatile pid_t pid;
	volatile int code; // 0 or negative errno
};

struct kernel_sigaction { // not libc's type; all zero means SIG_DFL
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

static void reset_signals(const sigset_t *unblocked)
{
	static const struct kernel_sigaction standard;
	for (int number = 1; number <= KERNEL_SIGNALS; number++)
		syscall(SYS_rt_sigaction, number, &standard, NULL, sizeof(standard.mask));
	sigprocmask(SIG_SETMASK, unblocked, NULL);
}

static void set_up_descriptors(const struct spawn *spawn)
{
	dup2(spawn->control_fd, SPAWN_CONTROL_FD); // the copy is not close-on-exec
	int nowhere = open("/dev/null", O_RDWR);
	bool silent = spawn->quiet || fcntl(STDERR_FILENO, F_GETFD) < 0;
	for (int fd = 0; nowhere >= 0 && fd <= (silent ? STDERR_FILENO : STDOUT_FILENO); fd++)
		if (fd != nowhere)
			dup2(nowhere, fd);
	close_from(SPAWN_CONTROL_FD + 1);
}

// exec leaves its frame without a return, so AddressSanitizer would consider it live in later mappings at this address.
__attribute__((no_sanitize("address")))
static int become_program(void *data)
{
	struct spawn_setup *setup = data;
	const struct spawn *spawn = setup->spawn;
	setsid();
	set_up_descriptors(spawn);
	reset_signals(&setup->unblocked);
	execve(spawn->program, spawn->argv, spawn->environment);
	setup->code = -errno;
	return 1; // clone exits by a system call; _exit would make sanitizers inspect an unknown stack
}

static int pass_through(void *data)
{
	struct spawn_setup *setup = data;
	pid_t inner = clone(become_program, setup->inner_stack, CLONE_VM | CLONE_VFORK | SIGCHLD, setup);
	if (inner > 0)
		setup->pid = inner;
	else
		setup->code = -errno;
	return 0;
}

static void run_child(struct spawn_setup *setup, char *stack)
{
	// CLONE_VFORK: returns when the intermediate process has ended, which in turn waits for the exec of the new one.
	pid_t between = clone(pass_through, stack, CLONE_VM | CLONE_VFORK, setup);
	if (between < 0) {
		setup->code = -errno;
		return;
	}
	while (waitpid(between, NULL, __WALL) < 0 && errno == EINTR)
		continue;
}

pid_t spawn_detached(const struct spawn *spawn)
{
	size_t size = 2 * (size_t)STACK_BYTES;
	char *stacks = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stacks == MAP_FAILED)
		return -errno;
	struct spawn_setup setup = {.spawn = spawn, .inner_stack = stacks + size};
	sigset_t all, before;
	sigfillset(&all);
	sigemptyset(&setup.unblocked);
	pthread_sigmask(SIG_SETMASK, &all, &before); // no handler of the program may run in the other processes
	run_child(&setup, stacks + STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	munmap(stacks, size);
	return setup.code < 0 ? setup.code : setup.pid;
}
