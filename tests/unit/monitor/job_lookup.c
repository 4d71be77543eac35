#include "monitor/internal.h"

#include "base/util.h"

#include "rows.h"

static const struct row {
	const char *teaches, *text, *job, *cgroup;
	long uid; // -1: not known
} rows[] = {
	{"cgroup v2: one line", "0::/system.slice/ssh.service\n", "", "/system.slice/ssh.service", -1},
	{"Slurm, cgroup v2", "0::/system.slice/slurmstepd.scope/job_4242/step_0/user/task_1\n", "4242",
		"/system.slice/slurmstepd.scope/job_4242/step_0/user/task_1", -1},
	{"Slurm, cgroup v1: job and user in the hierarchies that it uses",
		"12:pids:/\n4:memory:/slurm/uid_1000/job_77/step_batch\n1:name=systemd:/system.slice/slurmd.service\n0::/\n",
		"77", "/slurm/uid_1000/job_77/step_batch", 1000},
	{"Slurm with several daemons on a host", "3:cpuset:/slurm_node7/uid_5/job_8/step_0\n", "8",
		"/slurm_node7/uid_5/job_8/step_0", 5},
	{"cgroup v1 and v2: v2 decides if it has a job",
		"5:memory:/a\n1:name=systemd:/b\n0::/user.slice/x.scope\n", "", "/user.slice/x.scope", -1},
	{"PBS", "0::/pbs_jobs.service/jobid/123.server\n", "123.server", "/pbs_jobs.service/jobid/123.server", -1},
	{"LSF", "4:memory:/lsf/main/job.991.30221.1700000000\n", "991", "/lsf/main/job.991.30221.1700000000", -1},
	{"folder job_7 that no scheduler created: no job", "0::/user.slice/job_7\n", "", "/user.slice/job_7", -1},
	{"name that only begins like a job: no job", "0::/slurm/job_x7\n", "", "/slurm/job_x7", -1},
	{"Kubernetes: the container", "0::/kubepods/burstable/pod12-34/ctr0\n", "", "/kubepods/burstable/pod12-34/ctr0",
		-1},
	{"path as seen inside a container", "0::/\n", "", "/", -1},
	{"colon in the path", "0::/a:b/c\n", "", "/a:b/c", -1},
	{"invalid line: ignored", "\n0\n0:\n0:x\nx:y:z\n", "", "", -1},
};

static void check(void **state)
{
	const struct row *row = *state;
	char text[1024];
	struct job_lookup_result found = {.job_uid = (uid_t)-1};
	text_copy(text, sizeof(text), row->text);
	job_lookup_read_cgroups(text, &found);
	assert_string_equal(found.names[MONITOR_JOBS], row->job);
	assert_string_equal(found.names[MONITOR_CGROUPS], row->cgroup);
	assert_int_equal(found.job_uid, (uid_t)row->uid);
}

static void long_path(void **state)
{
	char text[2048] = "0::/";
	struct job_lookup_result found = {0};
	memset(text + 4, 'x', 1000);
	memcpy(text + 1004, "/end\n", 6);
	job_lookup_read_cgroups(text, &found);
	assert_int_equal(strncmp(found.names[MONITOR_CGROUPS], "…x", strlen("…x")), 0);
	assert_int_equal(strlen(found.names[MONITOR_CGROUPS]), MONITOR_GROUP_SIZE - 1);
	assert_string_equal(found.names[MONITOR_CGROUPS] + MONITOR_GROUP_SIZE - 5, "/end");
}

static const struct environment_row {
	const char *teaches, *text; // '|' is replaced by NUL
	const char *job;
	long uid;
} environments[] = {
	{"Slurm", "PATH=/bin|SLURM_JOB_ID=7|SLURM_JOB_UID=1001|", "7", 1001},
	{"several job variables: the first one counts", "PBS_JOBID=5.host|HOME=/|", "5.host", -1},
	{"variable whose name only ends like a job variable: ignored", "MY_SLURM_JOB_ID=7|", "", -1},
	{"empty variable: ignored", "SLURM_JOB_ID=|PBS_JOBID=3|", "3", -1},
	{"invalid user number: ignored", "SLURM_JOB_ID=7|SLURM_JOB_UID=x|", "7", -1},
	{"last variable without its NUL", "A=1|SLURM_JOB_ID=12", "12", -1},
	{"job id equal to a reserved row name: no job", "SLURM_JOB_ID=none|PBS_JOBID=other|LSB_JOBID=others|",
		"others", -1},
	{"empty file", "", "", -1},
};

static void check_environment(void **state)
{
	const struct environment_row *row = *state;
	char text[256];
	struct job_lookup_result found = {.job_uid = (uid_t)-1};
	text_copy(text, sizeof(text), row->text);
	size_t size = strlen(text);
	for (size_t i = 0; i < size; i++)
		text[i] = text[i] == '|' ? '\0' : text[i];
	job_lookup_read_environment(text, size, &found);
	assert_string_equal(found.names[MONITOR_JOBS], row->job);
	assert_int_equal(found.job_uid, (uid_t)row->uid);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD(&tests, environments, check_environment);
	ROWS_ADD_ONE(&tests, "long path: its end is kept", long_path);
	return rows_run(&tests, "belong");
}
