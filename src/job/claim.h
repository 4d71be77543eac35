/* Which of the recorders that measure one job on one machine reads a thing of it (its CPU sensors, one GPU), so that it is read once.
 * No lock file: whoever has bound an abstract socket named after job, user, machine and thing reads it; the others stay connected to
 * it, and when it goes (its owner ended, or was killed) one of them takes over at once. Sockets of somebody else are not believed
 * (SO_PEERCRED): then we read for ourselves, and the report, which counts each joule of a machine once, sorts it out.
 *
 * Abstract sockets belong to a network namespace: recorders in containers with a network each don't see each other and read
 * all of them, which costs time and counts nothing twice.
 *
 * One thread, never blocks; the descriptor of a claim is watched by the caller's epoll. A child that is forked and does not exec
 * must close the descriptors: as long as one copy is open nobody takes over. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CLAIM_NAME_SIZE = 64 };

struct claim {
	/* Owned: of the listening socket when held, which needs no watching; else of the connection to its owner, which hangs up when
	 * the owner goes. -1: held without a socket, or not settled yet: claim_turn at the next tick. */
	int fd;
	bool held;                  // ours to read
	int64_t owner_pid;          // who reads it, in our pid namespace, when we don't; VALUE_MISSING unknown
	int refusals;               // in a row: its name is taken, and nobody listens
	char name[CLAIM_NAME_SIZE]; // of the socket, without its leading NUL
};

/* key: job, machine and thing as text; the name of the socket has its hash and the user. Never fails: where sockets can't be had it
 * is held. */
void claim_open(struct claim *claim, const char *key);
// Its descriptor hung up, or there is none and it is not held: tries to take over. True if `held` or `fd` changed.
bool claim_turn(struct claim *claim);
// Held for ourselves alone, whoever else has it.
void claim_go_alone(struct claim *claim);
void claim_close(struct claim *claim); // any number of times; the next one takes over
