/* What systemd is told, by sd_notify(3): nothing where NOTIFY_SOCKET is not set. */
#pragma once

// "READY=1\nSTATUS=…": lines of VARIABLE=VALUE.
void notify(const char *format, ...) __attribute__((format(printf, 1, 2)));
