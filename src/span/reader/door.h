/* Where programs bring their rings: an abstract socket with a random name. Each connection is one message, a struct ring_hello
 * with the memfd of the ring. Nobody is answered, nobody is waited for, and who brings anything else is dropped: a stranger, a
 * memfd that could shrink under the reader, half a message, a connection that says nothing. */
#pragma once

#include "span/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { DOOR_SILENT_MOST = 64, DOOR_BACKLOG = 4096 /* connections that wait to be accepted */ };

struct door_guest { // a ring that was brought
	struct ring_hello hello;
	struct ring_header *header; // mapped, ring_bytes(hello.n_records) long
	pid_t pid;                  // as the kernel tells it
	pid_t shown_pid;            // what `admit` said
	uid_t uid;
	int pidfd;        // of that process; -1: it is gone already
	bool knows_token; // it was given the address, and did not find it
};

struct door_hooks {
	// The number by which the process is known; 0: its rings are not wanted. Asked before anything is mapped, header is NULL.
	pid_t (*admit)(void *data, const struct door_guest *guest);
	// A ring to be read; the mapping and the pidfd are the hook's.
	void (*take)(void *data, const struct door_guest *guest);
	void *data;
};

struct door {
	int fd;       // owned: listens; -1 closed
	int epoll_fd; // borrowed: where all descriptors of the door are waited for
	struct ring_address address;
	struct door_silent { // connections that have not said anything yet
		int fd;      // owned
		int64_t since_ns;
	} silent[DOOR_SILENT_MOST];
	size_t n_silent;
	uint64_t n_accepted;
};

// -errno. n_records and flags are what programs are asked for.
int door_open(struct door *door, int epoll_fd, uint32_t flags, uint32_t n_records);
void door_close(struct door *door);
// Hears whoever has come, a bounded number of them, without waiting; true: there may be more.
bool door_serve(struct door *door, const struct door_hooks *hooks, int64_t now_ns);
