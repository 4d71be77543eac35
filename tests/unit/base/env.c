#include "base/env.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>

static const char *const variables[] = {"WATTLE_SYSFS", "WATTLE_PROCFS", "WATTLE_NVML", "WATTLE_ROCM_SMI",
	"WATTLE_HELPER", "WATTLE_STATE"};

static int without_variables(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		unsetenv(variables[i]);
	return 0;
}

static void defaults(void **state)
{
	struct wattle_env env;
	assert_int_equal(env_open(&env, NULL), 0);
	assert_string_equal(env.sysfs, "/sys");
	assert_string_equal(env.procfs, "/proc");
	assert_true(env.procfs_fd >= 0);
	assert_false(env.procfs_replaced);
	assert_null(env.nvml);
	assert_true(strlen(env.state_dir) > 0);
	env_close(&env);
	assert_int_equal(env.procfs_fd, -1);
}

static void variables_are_taken(void **state)
{
	setenv("WATTLE_SYSFS", "/tmp", 1);
	setenv("WATTLE_PROCFS", "/usr", 1);
	setenv("WATTLE_NVML", "/x/libnvml.so", 1);
	setenv("WATTLE_STATE", "/x/state", 1);
	struct wattle_env env;
	assert_int_equal(env_open(&env, NULL), 0);
	assert_string_equal(env.sysfs, "/tmp");
	assert_string_equal(env.procfs, "/usr");
	assert_true(env.procfs_replaced);
	assert_string_equal(env.nvml, "/x/libnvml.so");
	assert_string_equal(env.state_dir, "/x/state");
	env_close(&env);
}

static void empty_is_unset(void **state)
{
	setenv("WATTLE_SYSFS", "", 1);
	setenv("WATTLE_PROCFS", "", 1);
	struct wattle_env env;
	assert_int_equal(env_open(&env, NULL), 0);
	assert_string_equal(env.sysfs, "/sys");
	assert_false(env.procfs_replaced);
	env_close(&env);
}

static void a_wrong_tree_is_refused(void **state)
{
	struct wattle_env env;
	struct wattle_error error;
	setenv("WATTLE_SYSFS", "/not/there", 1);
	assert_int_equal(env_open(&env, &error), -ENOENT);
	assert_non_null(strstr(error.text, "WATTLE_SYSFS=/not/there"));
	setenv("WATTLE_SYSFS", "/etc/passwd", 1);
	assert_int_equal(env_open(&env, &error), -ENOTDIR);
	char longer[700];
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	setenv("WATTLE_SYSFS", longer, 1);
	assert_int_equal(env_open(&env, &error), -ENAMETOOLONG);
}

static void clocks_run(void **state)
{
	struct wattle_env env;
	assert_int_equal(env_open(&env, NULL), 0);
	int64_t first_ns = env_now_ns(&env);
	assert_true(env_now_ns(&env) >= first_ns);
	assert_true(env_boottime_ns(&env) >= first_ns);
	assert_true(env_wall_ns(&env) > 1600000000 * NS_PER_S);
	env_close(&env);
}

// clang-format off
#define ONE(teaches, function) {teaches, function, without_variables, without_variables, NULL}
// clang-format on

int main(void)
{
	const struct CMUnitTest tests[] = {
		ONE("without variables: /sys, /proc and the usual libraries", defaults),
		ONE("variables replace trees and libraries", variables_are_taken),
		ONE("an empty variable is like none", empty_is_unset),
		ONE("a tree that is not there is refused, and the message names the variable", a_wrong_tree_is_refused),
		ONE("monotonic, boot and wall clock run", clocks_run),
	};
	return cmocka_run_group_tests_name("env", tests, NULL, NULL);
}
