/* Which of the recorders that measure one job on one machine reads a thing of it (its CPU sensors, one GPU), so that it is read once.
 * No lock file: whoever has bound an abstract socket named after job, user, machine and thing reads it; the others stay connected to
 * it, and when it goes (its owner ended, or was killed) one of them takes over at once. Sockets of somebody else are not believed
 * (SO_PEERCRED): then we read for ourselves, and the report, which counts each joule of a machine once, sorts it out.
 *
 * One thread, never blocks; the descriptor of a claim is watched by the caller's epoll. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct claim {
	int fd;         // owned: of the listening socket when held, else of the connection to its owner; -1: no claim (nobody else is there)
	bool held;      // ours to read
	int64_t owner_pid; // who reads it, in our pid namespace, when we don't; VALUE_MISSING unknown
	char name[108]; // of the socket, without its leading NUL
};

/* key: job id, user, machine and thing as text; hashed when longer than a socket's name may be. Never fails: where sockets can't be
 * had it is held. */
void claim_open(struct claim *claim, const char *key);
// The descriptor became readable or hung up: a new client (held), or the owner went (then we try). True if `held` or `fd` changed.
bool claim_turn(struct claim *claim);
void claim_close(struct claim *claim); // any number of times; the next one takes over
