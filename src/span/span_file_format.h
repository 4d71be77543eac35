/* Span file: spans written by a program without a recorder (WATTLE_SPANS).
 *
 * The file consists of blocks of 64 KiB. The first has a struct span_file_header and counts the claimed blocks. Every
 * other block is claimed by one thread, which takes the next number from n_claimed. All writers, threads and processes,
 * map the file, so there is no lock that a killed writer would keep. The thread has the file system reserve the block
 * (fallocate, or writing zeros where that is missing, because a full disk must not end the program by SIGBUS), maps it
 * and writes records as in a ring. A killed program leaves everything it wrote.
 *
 * Each block is independent: its table of names starts empty, so a lost or damaged block affects only itself. State
 * that continues between the blocks of a stream is the stack of open spans (n_open is its depth) and the open ranges of
 * the process. A stream corresponds to one ring: one thread, and after RECORD_THREAD the thread that took it over. It
 * is identified by (boot_id, pid, image, stream). Its blocks are ordered by `sequence`; in the file they may be in any
 * order and mixed with others. A block that was claimed but never written (a killed writer, a full disk) is all zeros
 * or beyond the end of the file. An existing file is continued, also by later runs: boot_id and the anchors then
 * distinguish the runs.
 *
 * The reader trusts nothing: it checks magic and version per block, limits n_used to SPAN_BLOCK_RECORDS, and treats
 * records as those of a ring. */
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
	alignas(64) _Atomic uint64_t n_claimed; // number of claimed blocks; the thread that sets it to i owns block i
};

struct span_block_header {
	uint32_t magic, version; // the magic is stored last, with release
	int32_t pid, tid;        // of the thread that claimed the block, in its own pid namespace
	uint32_t image;          // as in a ring
	uint32_t n_open;         // recorded spans open at the start of the block
	uint64_t stream;
	uint64_t sequence;                   // of this block in its stream, from 0
	uint8_t boot_id[16];                 // /proc/sys/kernel/random/boot_id; zeros: unknown
	int64_t anchor_mono_ns;              // CLOCK_MONOTONIC, ns, and
	int64_t anchor_wall_ns;              // CLOCK_REALTIME, ns, at the same instant, when the block was claimed
	alignas(64) _Atomic uint64_t n_used; // number of records, stored with release: records below it are complete
	_Atomic uint64_t lost;               // as in a ring, for the time while this was the stream's last block
	_Atomic uint64_t unwound;
};
static_assert(sizeof(struct span_block_header) <= SPAN_BLOCK_HEADER_BYTES, "records begin after the header");
static_assert(sizeof(struct span_file_header) <= 512, "magic and counter are in one block of any file system");
