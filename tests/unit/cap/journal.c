/* The journal's files: valid ones are read back unchanged, all others are refused. */
#include "cap/journal.h"

#include "base/buf.h"
#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *stay(void *data)
{
	(void)data;
	for (;;)
		pause();
	return NULL;
}

// A process with threads lives as long as one of them, though its main thread shows as a zombie.
static void first_thread_ends(void **state)
{
	int told[2];
	struct cap_keeper keeper;
	siginfo_t info;
	assert_int_equal(pipe(told), 0);
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t thread;
		alarm(10); // if the test fails
		cap_keeper_self(&keeper);
		bool ok = pthread_create(&thread, NULL, stay, NULL) == 0 &&
			write(told[1], &keeper, sizeof(keeper)) == (ssize_t)sizeof(keeper);
		if (!ok)
			_exit(1);
		syscall(SYS_exit, 0); // exits this thread only
	}
	assert_int_equal(read(told[0], &keeper, sizeof(keeper)), sizeof(keeper));
	for (int i = 0; i < 20; i++) {
		assert_false(cap_keeper_is_gone(&keeper));
		usleep(5000);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(cap_keeper_is_gone(&keeper)); // a zombie with all its threads
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(told[0]);
	close(told[1]);
}

static struct journal_entry an_entry(void)
{
	struct journal_entry entry = {
		.device = "package-0",
		.id = "package-0",
		.boot_id = "283a899d-8d74-4180-834f-7240925a8c22",
		.since_unix_s = 1795272275,
		.token = INT64_C(1415098779002911764),
		.owner = {.pid = 4242, .start_ticks = UINT64_MAX, .uid = UINT32_MAX, .name = "train.py --x=1"},
		.keeper = {.pid = 4243, .start_ticks = 1, .pid_ns = 4026531836},
		.previous = {.fields = {{"intel-rapl:0/constraint_0_power_limit_uw", 65000000},
				     {"intel-rapl:0/enabled", 0}},
			.n = 2},
		.set = {.fields = {{"intel-rapl:0/constraint_0_power_limit_uw", -1}}, .n = 1},
	};
	return entry;
}

static void print(const struct journal_entry *entry, struct buf *text)
{
	buf_init(text, JOURNAL_TEXT_MAX);
	journal_entry_print(entry, text);
	assert_int_equal(text->failed, 0);
}

static void assert_same(const struct cap_setting *a, const struct cap_setting *b)
{
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		assert_string_equal(a->fields[i].name, b->fields[i].name);
		assert_true(a->fields[i].value == b->fields[i].value);
	}
}

static void reads_what_it_wrote(void **state)
{
	struct journal_entry entry = an_entry(), found;
	struct buf text;
	print(&entry, &text);
	assert_int_equal(journal_entry_parse(text.data, text.size, &found, NULL), 0);
	assert_string_equal(found.device, entry.device);
	assert_string_equal(found.boot_id, entry.boot_id);
	assert_string_equal(found.owner.name, entry.owner.name);
	assert_true(found.token == entry.token && found.since_unix_s == entry.since_unix_s && !found.timed);
	assert_true(found.owner.pid == 4242 && found.owner.start_ticks == UINT64_MAX && found.owner.uid == UINT32_MAX);
	assert_true(cap_keeper_is(&found.keeper, &entry.keeper));
	assert_same(&found.previous, &entry.previous);
	assert_same(&found.set, &entry.set);
	assert_int_equal(found.next.n, 0);
	buf_finish(&text);
}

static void a_name_is_one_line(void **state)
{
	struct journal_entry entry = an_entry(), found;
	struct buf text;
	text_copy(entry.owner.name, sizeof(entry.owner.name), "a\nprevious.x=1\nb\x7f\x1b[2J\xc3\xa4");
	print(&entry, &text);
	assert_int_equal(journal_entry_parse(text.data, text.size, &found, NULL), 0);
	assert_string_equal(found.owner.name, "a?previous.x=1?b??[2J\xc3\xa4");
	assert_int_equal(found.previous.n, 2);
	buf_finish(&text);
}

/* ---- files that are refused ---- */

// The text with a valid checksum, so that the line itself is refused.
static void sign(struct buf *text)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < text->size; i++)
		sum = (sum ^ (unsigned char)text->data[i]) * UINT64_C(0x100000001b3);
	buf_printf(text, "end=%016llx\n", (unsigned long long)sum);
}

static const struct row {
	const char *teaches, *from, *to;
} refused[] = {
	{"file of another version: refused", "wattle-cap-journal=1", "wattle-cap-journal=2"},
	{"unknown line: refused", "token=", "tokens="},
	{"repeated line: refused", "device=package-0\n", "device=package-0\ndevice=package-0\n"},
	{"missing line: refused", "device=package-0\n", ""},
	{"line without a value: refused", "device=package-0\n", "device\n"},
	{"empty line: refused", "device=package-0\n", "\ndevice=package-0\n"},
	{"no device", "\nid=package-0\n", "\nid=\n"},
	{"invalid number: refused", "owner_pid=4242", "owner_pid=4242x"},
	{"number out of range: refused", "owner_pid=4242", "owner_pid=4294967296"},
	{"negative pid: refused", "keeper_pid=4243", "keeper_pid=4294967295"},
	{"unknown kind of limit: refused", "what=power", "what=speed"},
	{"neither yes nor no: refused", "timed=0", "timed=2"},
	{"register without a value: refused", "intel-rapl:0/enabled=0", "intel-rapl:0/enabled="},
	{"register that is no number: refused", "intel-rapl:0/enabled=0", "intel-rapl:0/enabled=0.5"},
	{"register without a name: refused", "previous.intel-rapl:0/enabled=0", "previous.=0"},
	{"repeated register: refused", "previous.intel-rapl:0/enabled=0\n",
		"previous.intel-rapl:0/enabled=0\nprevious.intel-rapl:0/enabled=1\n"},
	{"text that is too long: refused", "boot_id=", "boot_id=0000000000000000000000000000000000000000000000000000"},
};

static void check_refused(void **state)
{
	const struct row *row = *state;
	struct journal_entry entry = an_entry(), found;
	struct wattle_error error = {0};
	struct buf text, changed;
	print(&entry, &text);
	const char *at = strstr(text.data, row->from);
	assert_non_null(at);
	buf_init(&changed, JOURNAL_TEXT_MAX);
	buf_add(&changed, text.data, (size_t)(at - text.data));
	buf_str(&changed, row->to);
	buf_str(&changed, at + strlen(row->from));
	changed.size -= strlen("end=0123456789abcdef\n");
	sign(&changed);
	assert_int_equal(journal_entry_parse(changed.data, changed.size, &found, &error), -EBADMSG);
	assert_string_not_equal(error.text, "");
	buf_finish(&text);
	buf_finish(&changed);
}

static void cut_anywhere(void **state)
{
	struct journal_entry entry = an_entry(), found;
	struct buf text;
	print(&entry, &text);
	for (size_t size = 0; size < text.size; size++)
		assert_int_equal(journal_entry_parse(text.data, size, &found, NULL), -EBADMSG);
	buf_finish(&text);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

// Bytes changed, doubled or dropped, with and without a matching checksum: refused or parsed, never a crash.
static void fuzzed(void **state)
{
	struct journal_entry entry = an_entry(), found;
	struct buf text;
	uint64_t random = UINT64_C(0x9e3779b97f4a7c15);
	size_t n_understood = 0;
	print(&entry, &text);
	for (int trial = 0; trial < 50000; trial++) {
		struct buf changed;
		bool is_signed = next_random(&random) % 4 != 0;
		buf_init(&changed, 2 * JOURNAL_TEXT_MAX);
		buf_add(&changed, text.data, text.size - (is_signed ? strlen("end=0123456789abcdef\n") : 0));
		for (uint64_t n = 1 + next_random(&random) % 4; n > 0; n--) {
			size_t at = next_random(&random) % changed.size, length = 1 + next_random(&random) % 40;
			length = at + length > changed.size ? changed.size - at : length;
			switch (next_random(&random) % 3) {
			case 0:
				changed.data[at] = (char)next_random(&random);
				break;
			case 1:
				buf_add(&changed, text.data + at % text.size % (text.size - 40), length);
				break;
			default:
				memmove(changed.data + at, changed.data + at + length, changed.size - at - length);
				changed.size -= length - (length == changed.size);
			}
		}
		if (is_signed)
			sign(&changed);
		int r = journal_entry_parse(changed.data, changed.size, &found, NULL);
		assert_true(r == 0 || r == -EBADMSG);
		n_understood += r == 0;
		assert_true(r < 0 || (found.previous.n > 0 && found.previous.n <= CAP_FIELDS_MAX));
		buf_finish(&changed);
	}
	assert_true(n_understood > 0); // otherwise the checksum would stop the fuzzer early
	buf_finish(&text);
}

static void too_long(void **state)
{
	char text[JOURNAL_TEXT_MAX];
	struct journal_entry found;
	memset(text, 'a', sizeof(text));
	assert_int_equal(journal_entry_parse(text, sizeof(text), &found, NULL), -EBADMSG);
}

/* ---- files ---- */

static void open_journal(struct journal *journal, char folder[64])
{
	struct wattle_env env = {.sysfs_fd = -1, .procfs_fd = -1};
	snprintf(folder, 64, "/tmp/wattle-journal-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(env.state_dir, sizeof(env.state_dir), "%s/a/state", folder);
	assert_int_equal(journal_open(&env, false, journal, NULL), -ENOENT);
	mode_t before = umask(0077);
	assert_int_equal(journal_open(&env, true, journal, NULL), 0);
	umask(before);
}

static void close_journal(struct journal *journal, const char *folder)
{
	char command[128];
	journal_close(journal);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

static void others_may_look(void **state)
{
	struct journal_entry entry = an_entry(), found;
	struct journal journal;
	struct stat st;
	char folder[64];
	open_journal(&journal, folder);
	mode_t before = umask(0077);
	assert_int_equal(journal_write(&journal, JOURNAL_LEASE, &entry, NULL), 0);
	umask(before);
	assert_int_equal(fstat(journal.fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_int_equal(fstatat(journal.fd, "package-0.lease", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(journal_read(&journal, "package-0", JOURNAL_LEASE, &found, NULL), 0);
	assert_int_equal(journal_read(&journal, "package-0", JOURNAL_PERSISTENT, &found, NULL), -ENOENT);
	assert_int_equal(journal_remove(&journal, JOURNAL_LEASE, &entry), 0);
	assert_int_equal(journal_remove(&journal, JOURNAL_LEASE, &entry), 0);
	assert_int_equal(journal_read(&journal, "package-0", JOURNAL_LEASE, &found, NULL), -ENOENT);
	close_journal(&journal, folder);
}

static void not_believed(const struct journal *journal, const char *stem)
{
	struct journal_entry found;
	assert_int_equal(journal_read(journal, stem, JOURNAL_LEASE, &found, NULL), -EBADMSG);
}

static void strangers_files(void **state)
{
	struct journal_entry entry = an_entry();
	struct journal journal;
	char folder[64];
	open_journal(&journal, folder);
	assert_int_equal(journal_write(&journal, JOURNAL_LEASE, &entry, NULL), 0);
	assert_int_equal(fchmodat(journal.fd, "package-0.lease", 0666, 0), 0);
	not_believed(&journal, "package-0");
	assert_int_equal(fchmodat(journal.fd, "package-0.lease", 0644, 0), 0);
	assert_int_equal(renameat(journal.fd, "package-0.lease", journal.fd, "package-1.lease"), 0);
	not_believed(&journal, "package-1"); // the entry describes another device
	assert_int_equal(symlinkat("package-1.lease", journal.fd, "package-0.lease"), 0);
	not_believed(&journal, "package-0");
	assert_int_equal(journal_put_aside(&journal, "package-0", JOURNAL_LEASE), 0);
	assert_int_equal(mkfifoat(journal.fd, "package-0.lease", 0600), 0);
	not_believed(&journal, "package-0"); // and nothing waits
	close_journal(&journal, folder);
}

// A user who can create files in the journal's folder could hold the lock forever, or simulate a lease.
static void anothers_lock(void **state)
{
	enum { OTHER_USER = 65534 };
	struct journal_entry lease = an_entry();
	struct wattle_error error = {0};
	struct journal journal;
	char folder[64], expected[64];
	int fd = -1;
	if (geteuid() != 0)
		SKIP_BECAUSE("another user's file needs root");
	open_journal(&journal, folder);
	int made_fd = openat(journal.fd, "package-0.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	assert_true(made_fd >= 0);
	assert_int_equal(fchown(made_fd, OTHER_USER, OTHER_USER), 0);
	assert_int_equal(lock_take(&journal, "package-0", LOCK_TRY, &fd, &error), -EPERM);
	snprintf(expected, sizeof(expected), "package-0.lock: belongs to user %d; remove it", OTHER_USER);
	assert_non_null(strstr(error.text, expected));
	// Locked by a process that is not the lease's keeper, after the keeper has ended.
	assert_int_equal(lock_keep(made_fd, &lease.token), 0);
	lease.keeper.pid = 0x3ffffff; // above the kernel's maximum
	assert_false(lock_is_kept(&journal, "package-0", &lease));
	cap_keeper_self(&lease.keeper);
	lock_drop(made_fd);
	close(made_fd);
	assert_true(lock_is_kept(&journal, "package-0", &lease)); // the state of the keeper decides
	assert_int_equal(unlinkat(journal.fd, "package-0.lock", 0), 0);
	assert_int_equal(lock_take(&journal, "package-0", LOCK_TRY, &fd, &error), 0);
	close(fd);
	close_journal(&journal, folder);
}

/* ---- locations of root's journal ---- */

enum { SOMEBODY = 65534 };

static const struct place_row {
	const char *teaches;
	uid_t folder_uid, caps_uid,
		link_uid; // link_uid: owner of a link to the folder; (uid_t)-1: no link
	mode_t folder_mode, caps_mode;
	bool is_accepted;
} places[] = {
	{"root's own folder: accepted", 0, 0, (uid_t)-1, 0755, 0755, true},
	{"root's folder in a sticky world-writable folder: accepted", 0, 0, (uid_t)-1, 01777, 0755, true},
	{"a symbolic link of root: followed", 0, 0, 0, 0755, 0755, true},
	{"another user's journal: refused", 0, SOMEBODY, (uid_t)-1, 0755, 0755, false},
	{"root's journal in another user's folder: refused", SOMEBODY, 0, (uid_t)-1, 0755, 0755, false},
	{"a group-writable folder on the path: refused", 0, 0, (uid_t)-1, 0775, 0755, false},
	{"a world-writable journal folder: refused, even if sticky", 0, 0, (uid_t)-1, 0755, 01777, false},
	{"another user's symbolic link: refused", 0, 0, SOMEBODY, 01777, 0755, false},
};

static void locations_of_root(void **state)
{
	const struct place_row *row = *state;
	struct wattle_env env = {.sysfs_fd = -1, .procfs_fd = -1};
	struct wattle_error error = {0};
	struct journal journal;
	char top[64], folder[96], caps[128], link[96];
	if (geteuid() != 0)
		SKIP_BECAUSE("only root checks this");
	snprintf(top, sizeof(top), "/tmp/wattle-journal-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(folder, sizeof(folder), "%s/folder", top);
	snprintf(caps, sizeof(caps), "%s/caps", folder);
	snprintf(link, sizeof(link), "%s/link", top);
	snprintf(env.state_dir, sizeof(env.state_dir), "%s", row->link_uid == (uid_t)-1 ? folder : link);
	assert_int_equal(mkdir(folder, 0755) | mkdir(caps, 0755) | symlink("folder", link), 0);
	assert_int_equal(lchown(link, row->link_uid == (uid_t)-1 ? 0 : row->link_uid, 0), 0);
	assert_int_equal(chmod(caps, row->caps_mode) | chmod(folder, row->folder_mode), 0);
	assert_int_equal(chown(caps, row->caps_uid, 0) | chown(folder, row->folder_uid, 0), 0);
	int r = journal_open(&env, true, &journal, &error);
	if (row->is_accepted) {
		assert_int_equal(r, 0);
		journal_close(&journal);
	} else {
		assert_int_equal(r, -EPERM);
		assert_non_null(strstr(error.text, "refusing the journal"));
	}
	assert_int_equal(rmdir(caps) | rmdir(folder) | unlink(link) | rmdir(top), 0);
}

// The owner of the folder could otherwise place a link where root writes.
static void root_creates_nothing_elsewhere(void **state)
{
	struct wattle_env env = {.sysfs_fd = -1, .procfs_fd = -1};
	struct journal journal;
	struct stat st;
	char folder[64];
	if (geteuid() != 0)
		SKIP_BECAUSE("only root checks this");
	snprintf(folder, sizeof(folder), "/tmp/wattle-journal-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chown(folder, SOMEBODY, 0), 0);
	snprintf(env.state_dir, sizeof(env.state_dir), "%s/state", folder);
	assert_int_equal(journal_open(&env, false, &journal, NULL), -ENOENT); // no warning without a journal
	assert_int_equal(journal_open(&env, true, &journal, NULL), -EPERM);
	assert_int_equal(stat(env.state_dir, &st), -1);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "entry: read back unchanged, extreme values too", reads_what_it_wrote);
	ROWS_ADD_ONE(&tests, "owner's name with line breaks: adds no lines", a_name_is_one_line);
	ROWS_ADD(&tests, refused, check_refused);
	ROWS_ADD_ONE(&tests, "file truncated at any byte: refused", cut_anywhere);
	ROWS_ADD_ONE(&tests, "file longer than any valid one: refused", too_long);
	ROWS_ADD_ONE(&tests, "fuzzed file: refused or parsed, never a crash", fuzzed);
	ROWS_ADD_ONE(&tests, "owner whose main thread has ended: still alive", first_thread_ends);
	ROWS_ADD_ONE(&tests, "files are readable by all users, whatever the umask", others_may_look);
	ROWS_ADD_ONE(&tests, "files writable by others, links, fifos and files for another device: refused",
		strangers_files);
	ROWS_ADD_ONE(&tests, "lock file of another user: refused, proves no lease", anothers_lock);
	ROWS_ADD(&tests, places, locations_of_root);
	ROWS_ADD_ONE(&tests, "root creates no journal in another user's folder", root_creates_nothing_elsewhere);
	return rows_run(&tests, "journal");
}
