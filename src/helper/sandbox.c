#include "helper/helper.h"

#include "base/env.h"
#include "base/util.h"
#include "cap/device.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void sandbox_limit_resources(size_t n_descriptors)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < n_descriptors) {
		struct rlimit wanted = {n_descriptors, files.rlim_max < n_descriptors ? n_descriptors : files.rlim_max};
		files.rlim_cur = files.rlim_max; // as far as possible without privileges; fewer descriptors serve fewer clients
		if (setrlimit(RLIMIT_NOFILE, &wanted) < 0)
			setrlimit(RLIMIT_NOFILE, &files);
	}
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); // a core dump would expose readings to other users
	umask(022); // the journal is public: `wattle cap list` of any user reads the owners of limits from it
}

__attribute__((format(printf, 2, 3))) static void add_reason(struct sandbox_report *report, const char *format, ...)
{
	size_t length = strlen(report->text);
	va_list args;
	va_start(args, format);
	vsnprintf(report->text + length, sizeof(report->text) - length, format, args);
	va_end(args);
}

static void fails(struct sandbox_report *report, const char *what, int error)
{
	report->is_whole = false;
	add_reason(report, "%s%s (%s)", report->text[0] != '\0' ? "; " : "", what, strerror(error));
}

/* ---- capabilities ---- */

static bool has_capability(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
	return syscall(SYS_capget, &header, data) == 0 && (data[capability / 32].effective >> capability % 32 & 1) != 0;
}

// A capability outside of the bounding set can't be regained by executing a program.
static int bound(int kept)
{
	if (!has_capability(CAP_SETPCAP))
		return 0; // no_new_privs has the same effect
	for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (i != kept && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0)
			return errno;
	return 0;
}

static int drop_capabilities(int kept)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
	int error = bound(kept);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (kept >= 0 && has_capability(kept)) {
		data[kept / 32].effective = UINT32_C(1) << kept % 32;
		data[kept / 32].permitted = UINT32_C(1) << kept % 32;
	}
	return syscall(SYS_capset, &header, data) < 0 ? errno : error;
}

void sandbox_drop_capabilities(void)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	drop_capabilities(-1);
}

/* ---- system calls ---- */

// System calls needed for serving, reading counters, the journal, restoring, and NVML.
static const char *const allowed[] = {"accept4", "access", "brk", "chmod", "clock_getres", "clock_gettime",
	"clock_nanosleep", "close", "connect", "dup", "dup2", "dup3", "epoll_create1", "epoll_ctl", "epoll_pwait",
	"epoll_pwait2", "epoll_wait", "eventfd2", "exit", "exit_group", "faccessat", "faccessat2", "fallocate",
	"fchmod", "fchmodat", "fcntl", "fdatasync", "flock", "fstat", "fstatfs", "fsync", "ftruncate", "futex",
	"get_robust_list", "getcpu", "getcwd", "getdents64", "getegid", "geteuid", "getgid", "getpeername", "getpid",
	"getppid", "getrandom", "getrlimit", "getsockname", "getsockopt", "gettid", "gettimeofday", "getuid", "ioctl",
	"kill", "lseek", "lstat", "madvise", "membarrier", "memfd_create", "mkdir", "mkdirat", "mmap", "mprotect",
	"mremap", "munmap", "nanosleep", "newfstatat", "open", "openat", "openat2", "pidfd_open", "pidfd_send_signal",
	"pipe", "pipe2", "poll", "ppoll", "pread64", "prlimit64", "pselect6", "pwrite64", "read", "readlink",
	"readlinkat", "readv", "recvfrom", "recvmsg", "rename", "renameat", "renameat2", "restart_syscall", "rseq",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "sched_getaffinity", "sched_getparam",
	"sched_getscheduler", "sched_yield", "select", "sendmsg", "sendto", "set_robust_list", "setsockopt", "shutdown",
	"sigaltstack", "signalfd4", "stat", "statfs", "statx", "sysinfo", "tgkill", "time", "umask", "uname", "unlink",
	"unlinkat", "wait4", "waitid", "write", "writev"};
// System calls that wattled never uses: an attempt indicates an attack. All others are refused with EPERM.
static const char *const fatal_calls[] = {"add_key", "bpf", "chroot", "delete_module", "execve", "execveat",
	"finit_module", "init_module", "ioperm", "iopl", "kexec_file_load", "kexec_load", "keyctl", "mount",
	"move_mount", "open_by_handle_at", "open_tree", "perf_event_open", "pivot_root", "process_vm_readv",
	"process_vm_writev", "ptrace", "reboot", "request_key", "setns", "settimeofday", "swapon", "umount2", "unshare",
	"userfaultfd"};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#define IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define IS_SANITIZED 0
#endif
// The leak checker stops its own process from a second one at exit.
static const char *const for_sanitizers[] = {"arch_prctl", "clone", "getdents", "prctl", "ptrace"};

// Skips names that this architecture does not have.
static int add_rules(scmp_filter_ctx filter, uint32_t action, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);
		if (number == __NR_SCMP_ERROR || number < 0)
			continue;
		int r = seccomp_rule_add(filter, action, number, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Allows threads, which NVML may start, but no processes. clone3 is reported as missing, because its flags are behind a
 * pointer, so glibc falls back to clone. Sockets are limited to local datagram sockets, for notifications to systemd:
 * services behind stream sockets grant rights to uid 0 (/run/systemd/private, D-Bus, Docker). */
enum { SOCKET_TYPE_MASK = 0xf }; // without SOCK_CLOEXEC and SOCK_NONBLOCK

static int add_file_rules(scmp_filter_ctx filter)
{
	int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (r == 0 && !IS_SANITIZED)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
			SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_UNIX),
			SCMP_A1(SCMP_CMP_MASKED_EQ, SOCKET_TYPE_MASK, SOCK_DGRAM));
	return r;
}

static int filter_calls(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (filter == NULL)
		return ENOMEM;
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);    // also for threads that NVML has already started
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); // as a binary tree: the list is long and reads are frequent
	int r = add_rules(filter, SCMP_ACT_ALLOW, allowed, ARRAY_SIZE(allowed));
	if (r == 0 && IS_SANITIZED)
		r = add_rules(filter, SCMP_ACT_ALLOW, for_sanitizers, ARRAY_SIZE(for_sanitizers));
	if (r == 0 && !IS_SANITIZED)
		r = add_rules(filter, SCMP_ACT_KILL_PROCESS, fatal_calls, ARRAY_SIZE(fatal_calls));
	if (r == 0)
		r = add_file_rules(filter);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return -r;
}

/* ---- files ---- */

// getpwuid_r reads the first two (user names in messages). It and NVML may load libraries at any time.
static const char *const read_everywhere[] = {"/etc/passwd", "/etc/nsswitch.conf", "/etc/ld.so.cache", "/usr", "/lib",
	"/lib64", "/opt", "/nix/store"};

static void allow_nvidia(struct landlock *landlock)
{
	glob_t found = {0};
	if (glob("/dev/nvidia*", 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			landlock_allow(landlock, AT_FDCWD, found.gl_pathv[i], FILES_WRITE);
	globfree(&found);
	landlock_allow(landlock, AT_FDCWD, "/dev/null", FILES_WRITE);
}

static void allow_registers(struct landlock *landlock, const struct sandbox_needs *needs)
{
	const char *path;
	for (size_t i = 0; i < needs->devices->n; i++)
		for (size_t file = 0; (path = cap_file_of(&needs->devices->devices[i], file)) != NULL; file++)
			landlock_allow(landlock, needs->env->sysfs_fd, path, FILES_WRITE);
}

static void allow_socket(struct landlock *landlock, const char *socket)
{
	char folder[108];
	text_copy(folder, sizeof(folder), socket);
	char *slash = strrchr(folder, '/');
	if (slash == NULL)
		return;
	slash[slash == folder ? 1 : 0] = '\0';
	landlock_allow(landlock, AT_FDCWD, folder, FILES_REMOVE);
}

// Returns 0 or a positive errno. Needs no_new_privs or CAP_SYS_ADMIN.
static int restrict_files(const struct sandbox_needs *needs, struct landlock *ret_landlock)
{
	struct landlock landlock;
	landlock_begin(&landlock);
	landlock_allow(&landlock, needs->env->sysfs_fd, ".", FILES_READ);
	if (needs->env->procfs_replaced)
		landlock_allow(&landlock, needs->env->procfs_fd, ".", FILES_READ);
	landlock_allow(&landlock, AT_FDCWD, "/proc", FILES_READ);
	for (size_t i = 0; i < ARRAY_SIZE(read_everywhere); i++)
		landlock_allow(&landlock, AT_FDCWD, read_everywhere[i], FILES_READ);
	landlock_allow(&landlock, AT_FDCWD, needs->env->state_dir, FILES_OWN);
	allow_registers(&landlock, needs);
	allow_socket(&landlock, needs->socket);
	if (needs->has_nvidia)
		allow_nvidia(&landlock);
	int error = landlock_enforce(&landlock);
	*ret_landlock = landlock;
	return error;
}

int sandbox_enter(const struct sandbox_needs *needs, struct sandbox_report *ret_report, struct wattle_error *reterr)
{
	*ret_report = (struct sandbox_report){.is_whole = true};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fails(ret_report, "can't set no_new_privs", errno);
	// Protects against tracing by other processes of its user. The leak checker traces its own process.
	if (!IS_SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		fails(ret_report, "can't disable tracing of wattled", errno);
	struct landlock landlock;
	int restricted = restrict_files(needs, &landlock);
	if (landlock.error != 0)
		return error_set(reterr, -landlock.error,
			"%s: Landlock accepts no rule for it (%s), so wattled could not restore limits "
			"reliably; allow wattled to call landlock_add_rule, or also deny "
			"landlock_create_ruleset",
			landlock.failed_path, strerror(landlock.error));
	bool has_landlock = restricted != ENOSYS && restricted != EOPNOTSUPP;
	if (restricted != 0 && has_landlock)
		fails(ret_report, "can't restrict file access", restricted);
	int error = drop_capabilities(needs->has_nvidia ? CAP_SYS_ADMIN : -1);
	if (error != 0)
		fails(ret_report, "can't drop capabilities", error);
	bool has_admin = has_capability(CAP_SYS_ADMIN);
	error = filter_calls(); // also blocks capget and capset
	if (error != 0)
		fails(ret_report, "can't filter system calls", error);
	if (ret_report->is_whole)
		add_reason(ret_report, "keeps %s; system calls are filtered",
			has_admin ? "only CAP_SYS_ADMIN, for the limits of NVIDIA GPUs" : "no capability");
	if (restricted == 0)
		add_reason(ret_report, "; file access is restricted (Landlock ABI %d)", landlock.abi);
	else if (!has_landlock)
		add_reason(ret_report, "; file access is not restricted: this kernel has no Landlock");
	return 0;
}
