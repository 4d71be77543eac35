/* A process of wattle's own beside the recorder: the sender of `run --store`. It is a child of the recorder and no part of the target;
 * what it costs is part of wattle's own cost. In memory that both share: it writes its figures, the recorder reads them. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct companion {
	_Atomic int32_t pid, pid_before;  // 0: none. pid_before: of the one that it took over from
	_Atomic bool has_ended;           // the recorder has waited for `pid`
	_Atomic int64_t cpu_ns;           // since the run began, of all that there were
	_Atomic int64_t rss_bytes, max_rss_bytes; // what it does not share with the recorder; 0 unknown
};

static inline bool companion_is(const struct companion *companion, pid_t pid)
{
	return companion != NULL && pid != 0 && (pid == companion->pid || pid == companion->pid_before);
}
