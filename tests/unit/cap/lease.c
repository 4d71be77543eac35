/* Leases, where the command line cannot show them: owners that fork, and a death between the two steps of making a
 * limit persistent. */
#include "cap/lease.h"
#include "cap/journal.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char zone[] = "class/powercap/intel-rapl:0";
enum { BEFORE_UW = 65000000, LIMIT_W = 40 };

struct machine { // one CPU package
	char folder[64];
	struct wattle_env env;
	struct cap_devices devices;
	struct cap_device *package;
};

static void put(const char *folder, const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s/%s", folder, zone, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void open_machine(struct machine *machine)
{
	char command[256];
	strcpy(machine->folder, "/tmp/wattle-lease-XXXXXX");
	assert_non_null(mkdtemp(machine->folder));
	snprintf(command, sizeof(command), "mkdir -p %s/%s", machine->folder, zone);
	assert_int_equal(system(command), 0);
	put(machine->folder, "name", "package-0\n");
	put(machine->folder, "enabled", "1\n");
	put(machine->folder, "energy_uj", "1\n");
	put(machine->folder, "constraint_0_name", "long_term\n");
	put(machine->folder, "constraint_0_power_limit_uw", "65000000\n");
	put(machine->folder, "constraint_0_max_power_uw", "65000000\n");
	setenv("WATTLE_SYSFS", machine->folder, 1);
	setenv("WATTLE_NVML", "/nowhere", 1);
	snprintf(command, sizeof(command), "%s/state", machine->folder);
	setenv("WATTLE_STATE", command, 1);
	assert_int_equal(env_open(&machine->env, NULL), 0);
	assert_int_equal(cap_devices_open(&machine->devices, &machine->env, NULL), 0);
	assert_int_equal(cap_devices_find(&machine->devices, "package-0", CAP_POWER, &machine->package, NULL), 0);
}

static void close_machine(struct machine *machine)
{
	char command[128];
	cap_devices_close(&machine->devices);
	env_close(&machine->env);
	snprintf(command, sizeof(command), "rm -r %s", machine->folder);
	assert_int_equal(system(command), 0);
}

static long long limit_uw(const struct machine *machine)
{
	char path[256];
	long long value = -1;
	snprintf(path, sizeof(path), "%s/%s/constraint_0_power_limit_uw", machine->folder, zone);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lld", &value), 1);
	fclose(file);
	return value;
}

static struct cap_lease *lease(const struct machine *machine)
{
	struct cap_owner owner;
	struct cap_outcome outcome;
	struct cap_lease *lease;
	cap_owner_self("test", &owner);
	if (cap_lease_open(&machine->env, machine->package, &owner, NULL, &lease, NULL) < 0 ||
		cap_lease_set(lease, LIMIT_W, &outcome, NULL) < 0)
		_exit(1);
	return lease;
}

/* An owner takes a lease and forks; the child reports it through the pipe and lives until the pipe is closed. Then
 * the owner is killed. */
static void kill_forked_owner(const struct machine *machine, bool disowns, int *ret_child_line)
{
	int said[2], line[2];
	char word;
	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	assert_int_equal(pipe2(line, O_CLOEXEC), 0);
	pid_t owner = fork();
	if (owner == 0) {
		struct cap_lease *mine = lease(machine);
		close(line[1]);
		if (fork() == 0) {
			if (disowns)
				cap_lease_disown(mine);
			_exit(write(said[1], "x", 1) == 1 && read(line[0], &word, 1) == 0 ? 0 : 1);
		}
		pause();
	}
	close(line[0]);
	close(said[1]);
	assert_int_equal(read(said[0], &word, 1), 1);
	close(said[0]);
	assert_true(limit_uw(machine) == LIMIT_W * 1000000LL);
	kill(owner, SIGKILL);
	waitpid(owner, NULL, 0);
	*ret_child_line = line[1];
}

static void orphans_keep_nothing(void **state)
{
	for (int disowns = 0; disowns <= 1; disowns++) {
		struct machine machine;
		struct cap_outcome outcome;
		struct cap_owner holder;
		char text[128];
		int child_line;
		open_machine(&machine);
		kill_forked_owner(&machine, disowns != 0, &child_line);
		assert_false(cap_lease_holder(&machine.env, machine.package, &holder, text, sizeof(text)));
		assert_int_equal(cap_recover(&machine.env, NULL, NULL), 1);
		assert_true(limit_uw(&machine) == BEFORE_UW);
		struct cap_lease *next = lease(&machine);
		assert_true(cap_lease_holder(&machine.env, machine.package, &holder, text, sizeof(text)));
		close(child_line); // the orphan ends and releases its locks
		assert_true(cap_lease_holder(&machine.env, machine.package, &holder, text, sizeof(text)));
		assert_int_equal(cap_recover(&machine.env, NULL, NULL), 0);
		assert_true(limit_uw(&machine) == LIMIT_W * 1000000LL);
		assert_int_equal(cap_lease_end(next, &outcome, NULL), 0);
		assert_true(limit_uw(&machine) == BEFORE_UW);
		close_machine(&machine);
	}
}

// The entry of the persistent limit exists, that of the lease still exists, and its owner is dead: the limit stays.
static void killed_while_keeping(void **state)
{
	struct machine machine;
	struct cap_outcome outcome;
	struct journal journal;
	struct journal_entry entry;
	open_machine(&machine);
	pid_t owner = fork();
	if (owner == 0) {
		lease(&machine);
		kill(getpid(), SIGKILL);
	}
	waitpid(owner, NULL, 0);
	assert_int_equal(journal_open(&machine.env, false, &journal, NULL), 0);
	assert_int_equal(journal_read(&journal, "package-0", JOURNAL_LEASE, &entry, NULL), 0);
	assert_int_equal(journal_write(&journal, JOURNAL_PERSISTENT, &entry, NULL), 0);
	journal_close(&journal);
	assert_int_equal(cap_recover(&machine.env, NULL, NULL), 0);
	assert_true(limit_uw(&machine) == LIMIT_W * 1000000LL);
	assert_int_equal(cap_reset(&machine.env, machine.package, false, &outcome, NULL), 0);
	assert_true(limit_uw(&machine) == BEFORE_UW);
	close_machine(&machine);
}

static void tell(void *data, const char *text)
{
	char *told = data;
	size_t length = strlen(told);
	snprintf(told + length, 1000 - length, "%s\n", text);
}

// Leaves a journal entry of a dead owner with an edited previous limit.
static void write_previous(const struct machine *machine, enum journal_kind kind, int64_t previous_uw)
{
	struct journal journal;
	struct journal_entry entry;
	pid_t owner = fork();
	if (owner == 0) {
		lease(machine);
		kill(getpid(), SIGKILL);
	}
	waitpid(owner, NULL, 0);
	assert_int_equal(journal_open(&machine->env, false, &journal, NULL), 0);
	assert_int_equal(journal_read(&journal, "package-0", JOURNAL_LEASE, &entry, NULL), 0);
	assert_int_equal(journal_remove(&journal, JOURNAL_LEASE, &entry), 0);
	entry.previous.fields[0].value = previous_uw;
	assert_int_equal(journal_write(&journal, kind, &entry, NULL), 0);
	journal_close(&journal);
}

// The device's minimum is 6.5 W.
static void out_of_range(void **state)
{
	struct machine machine;
	struct cap_outcome outcome;
	char told[1000] = "";
	open_machine(&machine);
	write_previous(&machine, JOURNAL_LEASE, 1);
	assert_int_equal(cap_recover(&machine.env, tell, told), 1);
	assert_int_equal(limit_uw(&machine), 6500000);
	assert_non_null(strstr(told, "out of the device's range"));
	assert_non_null(strstr(told, "package-0: restored to 6.5 W"));
	close_machine(&machine);

	open_machine(&machine);
	write_previous(&machine, JOURNAL_LEASE, 1);
	struct cap_lease *next = lease(&machine); // restores the old entry first
	assert_int_equal(cap_lease_end(next, &outcome, NULL), 0);
	assert_int_equal(limit_uw(&machine), 6500000);
	close_machine(&machine);

	open_machine(&machine);
	write_previous(&machine, JOURNAL_PERSISTENT, 1);
	assert_int_equal(cap_reset(&machine.env, machine.package, false, &outcome, NULL), 0);
	assert_int_equal(limit_uw(&machine), 6500000);
	close_machine(&machine);
}

// A second `cap set` keeps the limit from before the first one.
static void out_of_range_inherited(void **state)
{
	struct machine machine;
	struct cap_outcome outcome;
	struct cap_owner owner;
	double before_w = 0;
	open_machine(&machine);
	write_previous(&machine, JOURNAL_PERSISTENT, 1);
	cap_owner_self("test", &owner);
	assert_int_equal(cap_set_persistent(&machine.env, machine.package, &owner, 30, 0, NULL, &outcome, NULL), 0);
	assert_true(cap_has_persistent(&machine.env, machine.package, &before_w, &owner));
	assert_true(fabs(before_w - 6.5) < 1e-9);
	close_machine(&machine);
}

// WATTLE_STATE names a folder of an unprivileged user.
static void anothers_journal(void **state)
{
	enum { SOMEBODY = 65534 };
	struct machine machine;
	char told[1000] = "", path[256];
	if (geteuid() != 0)
		SKIP_BECAUSE("only root checks this");
	open_machine(&machine);
	write_previous(&machine, JOURNAL_LEASE, 20000000);
	static const char *const names[] = {"", "/caps", "/caps/package-0.lease"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s%s", machine.env.state_dir, names[i]);
		assert_int_equal(chown(path, SOMEBODY, 0), 0);
	}
	assert_int_equal(cap_recover(&machine.env, tell, told), -EPERM);
	assert_int_equal(limit_uw(&machine), LIMIT_W * 1000000);
	assert_non_null(strstr(told, "/state belongs to user 65534"));
	assert_int_equal(chown(machine.env.state_dir, 0, 0), 0);
	snprintf(path, sizeof(path), "%s/caps", machine.env.state_dir);
	assert_int_equal(chown(path, 0, 0), 0);
	assert_int_equal(cap_recover(&machine.env, tell, told), 0); // now only the file belongs to another user
	assert_int_equal(limit_uw(&machine), LIMIT_W * 1000000);
	assert_non_null(strstr(told, "it was renamed to .broken"));
	close_machine(&machine);
}

static void kept(void **state)
{
	struct machine machine;
	struct cap_outcome outcome;
	open_machine(&machine);
	assert_int_equal(cap_lease_keep(lease(&machine), NULL), 0);
	assert_true(limit_uw(&machine) == LIMIT_W * 1000000LL);
	assert_int_equal(cap_recover(&machine.env, NULL, NULL), 0);
	assert_true(limit_uw(&machine) == LIMIT_W * 1000000LL);
	assert_int_equal(cap_reset(&machine.env, machine.package, false, &outcome, NULL), 0);
	assert_true(limit_uw(&machine) == BEFORE_UW);
	close_machine(&machine);
}

// As persistent limits: the first previous limit is passed on, unless another program has changed the limit since.
static void kept_on_another(void **state)
{
	enum { FIRST_W = 60, FOREIGN_W = 50, FIRST_UID = 1000 };
	for (int is_foreign = 0; is_foreign <= 1; is_foreign++) {
		struct machine machine;
		struct cap_outcome outcome;
		struct cap_owner owner, first;
		struct cap_lease *mine;
		double before;
		open_machine(&machine);
		cap_owner_self("test", &owner);
		owner.uid = FIRST_UID;
		assert_int_equal(cap_set_persistent(&machine.env, machine.package, &owner, FIRST_W, 0, NULL, &outcome,
					 NULL),
			0);
		if (is_foreign != 0)
			put(machine.folder, "constraint_0_power_limit_uw", "50000000\n");
		owner.uid++;
		assert_int_equal(cap_lease_open(&machine.env, machine.package, &owner, NULL, &mine, NULL), 0);
		assert_int_equal(cap_lease_set(mine, LIMIT_W, &outcome, NULL), 0);
		assert_int_equal(cap_lease_keep(mine, NULL), 0);
		assert_true(cap_has_persistent(&machine.env, machine.package, &before, &first));
		assert_int_equal(first.uid, is_foreign != 0 ? owner.uid : FIRST_UID);
		assert_int_equal(cap_reset(&machine.env, machine.package, false, &outcome, NULL), 0);
		assert_true(limit_uw(&machine) == (is_foreign != 0 ? FOREIGN_W * 1000000LL : BEFORE_UW));
		close_machine(&machine);
	}
}

// Only the limit that another program has changed is left; setting it again is refused.
static void foreign_changes(void **state)
{
	struct machine machine;
	struct cap_outcome outcome;
	open_machine(&machine);
	struct cap_lease *mine = lease(&machine);
	assert_int_equal(cap_lease_check(mine, &outcome), 0);
	put(machine.folder, "constraint_0_power_limit_uw", "50000000\n");
	assert_int_equal(cap_lease_check(mine, &outcome), 1);
	assert_true(outcome.was_foreign && outcome.foreign == 50);
	assert_int_equal(cap_lease_set(mine, LIMIT_W, &outcome, NULL), -ESTALE);
	assert_int_equal(cap_lease_end(mine, &outcome, NULL), 0);
	assert_true(outcome.was_foreign && limit_uw(&machine) == 50000000);
	close_machine(&machine);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests,
		"forked child, which shares its parent's locks: keeps neither this lease alive nor the next one",
		orphans_keep_nothing);
	ROWS_ADD_ONE(&tests, "owner dies between the two steps of making a limit persistent: the limit stays",
		killed_while_keeping);
	ROWS_ADD_ONE(&tests, "journal with an impossible previous limit: the device's minimum is restored",
		out_of_range);
	ROWS_ADD_ONE(&tests, "limit set twice, journal with an impossible previous limit: the device's minimum is kept",
		out_of_range_inherited);
	ROWS_ADD_ONE(&tests, "journal of another user, run by root: nothing is restored", anothers_journal);
	ROWS_ADD_ONE(&tests, "persistent limit: stays until it is reset", kept);
	ROWS_ADD_ONE(&tests,
		"persistent limit set over another: reset restores the first previous limit, or a foreign one",
		kept_on_another);
	ROWS_ADD_ONE(&tests, "limit changed by another program: reported and left unchanged", foreign_changes);
	return rows_run(&tests, "lease");
}
