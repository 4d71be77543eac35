/* Who may what. */
#pragma once

#include "base/env.h"
#include "base/error.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Who is at the other end of a connection, as the kernel says it. */

enum { PEER_GROUPS_MAX = 65536 + 1 }; // NGROUPS_MAX of Linux, and the one that is not supplementary

struct peer {
	pid_t pid; // 0: of a pid namespace that is not below ours
	uid_t uid;
	int64_t met_ns; // CLOCK_BOOTTIME of when it was asked for
};

// Room for all groups that a process can have; one for all peers, as they are met one by one.
struct peer_groups {
	gid_t gids[PEER_GROUPS_MAX];
	size_t n;
};

int peer_of(int fd, const struct wattle_env *env, struct peer *ret_peer, struct peer_groups *ret_groups);
/* A pidfd of the process that connected, to be closed by the caller. -ESRCH: it is gone, even if a process of its
 * number is there again. */
int peer_pidfd(int fd, const struct peer *peer, const struct wattle_env *env);
// Field 22 of /proc/PID/stat; 0: can't be read.
uint64_t peer_start_ticks(const struct wattle_env *env, pid_t pid);

/* Who may do what: the rules of the policy file, or those that hold without one.
 *
 * A rule is a line, "WHO WHAT": for a question (may this user read? limit this device?) the first rule that speaks
 * of the user and of the question decides; where none does, it is no. Root may all, and so may the user who runs
 * wattled. docs/helper.md is the manual. */

enum { POLICY_RULES_MAX = 64, POLICY_FILE_MAX = 64 * 1024 };

// What a rule speaks of. POLICY_NOTHING: of everything, and says no.
enum policy_subject { POLICY_NOTHING, POLICY_READ, POLICY_CAP };
enum policy_who { POLICY_USER, POLICY_GROUP, POLICY_OTHERS };
enum policy_kind { POLICY_POWER, POLICY_CLOCKS }; // as enum cap_what

struct policy_rule {
	enum policy_who who;
	uint32_t id; // uid or gid
	enum policy_subject subject;
	size_t class;          // READ: index in policy::periods_ns
	char device[96];       // CAP: "any", "gpus", "packages", a device's name or id
	enum policy_kind kind; // CAP
	double least, most;    // CAP: W or MHz; -INFINITY, INFINITY: as far as the device goes
};

struct policy {
	struct policy_rule rules[POLICY_RULES_MAX];
	size_t n;
	int64_t periods_ns[POLICY_RULES_MAX + 1]; // each once; [0] is root's
	size_t n_periods;
	char note[160]; // what an admin should know of it; "" nothing
};

// Whoever asks, as the kernel says it: the rules that speak of them, one bit a rule.
struct policy_rights {
	bool all; // root, or who runs this program and could do without it
	uint64_t rules;
};
static_assert(POLICY_RULES_MAX <= 64, "a rule has a bit in policy_rights");

// Members of group wattle may read every 10 ms. Only root may set limits.
void policy_default(struct policy *ret_policy);
/* From a file that only root (or who runs this program) may change. -EPERM, -EINVAL …, with a sentence that names
 * line and cure. */
int policy_load(const char *path, struct policy *ret_policy, struct wattle_error *reterr);
// The same from text; `path` is for messages.
int policy_parse(const char *text, size_t size, const char *path, struct policy *ret_policy,
	struct wattle_error *reterr);

struct policy_rights policy_rights_of(const struct policy *policy, uid_t uid, const gid_t *groups, size_t n_groups);
bool policy_may_read(const struct policy *policy, struct policy_rights rights, size_t *ret_class);
// *ret_least and *ret_most are the rule's, not yet the device's.
bool policy_may_cap(const struct policy *policy, struct policy_rights rights, const char *device, const char *id,
	enum policy_kind kind, double *ret_least, double *ret_most);
