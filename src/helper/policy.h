/* Access policy. */
#pragma once

#include "base/env.h"
#include "base/error.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Credentials of the process at the other end of a connection, from the kernel. */

enum { PEER_GROUPS_MAX = 65536 + 1 }; // NGROUPS_MAX of Linux, plus the primary group

struct peer {
	pid_t pid; // 0: in a pid namespace that is not below ours
	uid_t uid;
	int64_t met_ns; // CLOCK_BOOTTIME when the credentials were read
};

// Room for all groups that a process can have; shared by all peers, which are handled one at a time.
struct peer_groups {
	gid_t gids[PEER_GROUPS_MAX];
	size_t n;
};

int peer_of(int fd, const struct wattle_env *env, struct peer *ret_peer, struct peer_groups *ret_groups);
/* A pidfd of the connected process, to be closed by the caller. -ESRCH: it is gone, even if its pid was reused. */
int peer_pidfd(int fd, const struct peer *peer, const struct wattle_env *env);
// Field 22 of /proc/PID/stat; 0: unknown.
uint64_t peer_start_ticks(const struct wattle_env *env, pid_t pid);

/* Access rules: those of the policy file, or the defaults without one.
 *
 * A rule is a line "WHO WHAT". For a question (may this user read, or limit this device?) the first rule that matches
 * both the user and the question decides; without a match the answer is no. Root may do everything, and so may the user
 * who runs wattled. docs/helper.md is the manual. */

enum { POLICY_RULES_MAX = 64, POLICY_FILE_MAX = 64 * 1024 };

// Subject of a rule. POLICY_NOTHING matches every question and denies it.
enum policy_subject { POLICY_NOTHING, POLICY_READ, POLICY_CAP };
enum policy_who { POLICY_USER, POLICY_GROUP, POLICY_OTHERS };
enum policy_kind { POLICY_POWER, POLICY_CLOCKS }; // as enum cap_kind

struct policy_rule {
	int line; // in the file
	enum policy_who who;
	uint32_t id; // uid or gid
	enum policy_subject subject;
	size_t class;          // READ: index in policy::periods_ns
	char device[96];       // CAP: "any", "gpus", "packages", or a device's name or id
	enum policy_kind kind; // CAP
	double least, most;    // CAP: W or MHz; -INFINITY, INFINITY: the device's own range
};

struct policy {
	struct policy_rule rules[POLICY_RULES_MAX];
	size_t n;
	int64_t periods_ns[POLICY_RULES_MAX + 1]; // without duplicates; [0] is root's
	size_t n_periods;
	char note[160]; // warning for the admin; "" none
};

// Rights of a client with the kernel's credentials: one bit per rule that matches the user.
struct policy_rights {
	bool all; // root, or the user who runs this program, who does not need it
	uint64_t rules;
};
static_assert(POLICY_RULES_MAX <= 64, "policy_rights has a bit for each rule");

// Members of group wattle may read every 10 ms. Only root may set limits.
void policy_default(struct policy *ret_policy);
/* Reads a file that only root (or the user who runs this program) may change. -EPERM, -EINVAL …, with a message that
 * gives the line and the remedy. */
int policy_load(const char *path, struct policy *ret_policy, struct wattle_error *reterr);
// The same for a text; `path` is used in messages.
int policy_parse(const char *text, size_t size, const char *path, struct policy *ret_policy,
	struct wattle_error *reterr);

struct policy_rights policy_rights_of(const struct policy *policy, uid_t uid, const gid_t *groups, size_t n_groups);
bool policy_may_read(const struct policy *policy, struct policy_rights rights, size_t *ret_class);
// *ret_min and *ret_max are the limits of the rule, not of the device.
bool policy_may_cap(const struct policy *policy, struct policy_rights rights, const char *device, const char *id,
	enum policy_kind kind, double *ret_min, double *ret_max);

// What the policy allows, as plain English, one line per rule; for --check-policy.
struct buf;
void policy_describe(const struct policy *policy, const char *path, struct buf *out);

/* Reading the policy again while wattled serves. The serving process can't do that itself: its sandbox closes /etc/group and the
 * sockets of directory services to it, and the file may have been replaced. So a process of its own reads the file at each request,
 * without capabilities. It gets nothing from clients, and ends with the serving process. */

struct policy_answer {
	int code; // 0: `policy` is valid; negative errno: `error` has the reason
	struct wattle_error error;
	struct policy policy;
};
// policy_load, or policy_default without a path.
int policy_open(const char *path, struct policy *ret_policy, struct wattle_error *reterr);
// Starts that process. *ret_fd: each byte sent requests one struct policy_answer; non-blocking, to be closed by the caller.
int policy_reader_start(const char *path, int *ret_fd, struct wattle_error *reterr);
