/* What wattled has to say: one line an event on stderr, with the priority in front where systemd reads it. The only
 * place in this room that writes for people. */
#pragma once

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_NOTICE = 5, LOG_LEVEL_INFO = 6 }; // of syslog

// Looks at JOURNAL_STREAM: whether stderr is the journal's.
void log_start(void);
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for what clients can cause at will: so many lines, then one that says how many were left out, or a client
 * could fill the disk. */
void log_client(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
