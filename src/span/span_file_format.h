/* A span file: what a program leaves of its spans where there is no recorder (WATTLE_SPANS).
 *
 * Blocks of 64 KiB. The first has a struct span_file_header and counts the blocks that were ever claimed; every other one is
 * claimed by one thread: it takes the next number from n_claimed (the file is mapped by all its writers, threads and
 * processes alike, so nobody needs a lock that a killed writer would keep), has the file system reserve the block for good
 * (fallocate, or zeros where there is no such call: a full disk may not end the program by SIGBUS), maps it and writes
 * records as into a ring. A killed program leaves all that it wrote.
 *
 * A block stands alone: its table of names begins empty, so a block that was lost or damaged harms itself only. What goes on
 * from block to block of a stream is the stack of open spans (n_open says how high it is) and the open ranges of the process.
 * A stream is what one ring would be: one thread, and after RECORD_THREAD the next thread that took it over. It is named by
 * (boot_id, pid, image, stream); its blocks are ordered by `sequence`, in the file they may stand in any order and between
 * others'. A block that was claimed and never written (a killed writer, a full disk) is all zeros or lies past the end of the
 * file. A file that exists is continued, also by later runs: then boot_id and the anchors tell the runs apart.
 *
 * The reader trusts nothing: magic and version per block, n_used cut to SPAN_BLOCK_RECORDS, records as in a ring. */
#pragma once

#include "span/ring.h"

enum {
	SPAN_FILE_MAGIC = 0x46544157,  // "WATF"
	SPAN_BLOCK_MAGIC = 0x42544157, // "WATB"
	SPAN_FILE_VERSION = 1,
	SPAN_BLOCK_BYTES = 65536,
	SPAN_BLOCK_HEADER_BYTES = 256,
	SPAN_BLOCK_RECORDS = (SPAN_BLOCK_BYTES - SPAN_BLOCK_HEADER_BYTES) / 16,
};

struct span_file_header { // block 0
	uint32_t magic, version;
	uint32_t block_bytes;
	uint32_t reserved;
	alignas(64) _Atomic uint64_t n_claimed; // block i belongs to who made this number i
};

struct span_block_header {
	uint32_t magic, version; // the magic is stored last, with release
	int32_t pid, tid;        // of the thread that claimed it, as its own pid namespace has them
	uint32_t image;          // as in a ring
	uint32_t n_open;         // recorded spans that are open where the block begins
	uint64_t stream;
	uint64_t sequence;                   // of this block in its stream, from 0
	uint8_t boot_id[16];                 // /proc/sys/kernel/random/boot_id; zeros: unknown
	int64_t anchor_mono_ns;              // CLOCK_MONOTONIC and
	int64_t anchor_wall_ns;              // CLOCK_REALTIME at one instant: when the block was claimed
	alignas(64) _Atomic uint64_t n_used; // records, stored with release: what lies before is whole
	_Atomic uint64_t lost;               // as in a ring, while this was the stream's last block
	_Atomic uint64_t unwound;
};
static_assert(sizeof(struct span_block_header) <= SPAN_BLOCK_HEADER_BYTES, "records begin after the header");
static_assert(sizeof(struct span_file_header) <= 512, "magic and counter lie in one block of any file system");
