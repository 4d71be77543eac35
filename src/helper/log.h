/* What wattled has to say: one line an event on stderr, with the priority in front where systemd reads it. The only
 * place in this module that writes for people. */
#pragma once

#include <pthread.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_NOTICE = 5, LOG_LEVEL_INFO = 6 }; // of syslog

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

// How many lines there were of each level: warnings, which anybody can cause, must not keep a changed limit out of the log.
struct log_shares {
	pthread_mutex_t mutex;
	struct log_share {
		int64_t period_s;
		int n, left_out;
	} of[LOG_LEVEL_INFO + 1];
};
/* A line about what clients can cause at will: so many, then one that says how many were left out, or a client could fill the disk.
 * Zeroed shares are valid. */
void log_client(struct log_shares *shares, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
