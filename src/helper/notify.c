#include "helper/helper.h"

#include "base/cleanup.h"
#include "base/util.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

void notify(const char *format, ...)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path))
		return;
	size_t length = strlen(path);
	memcpy(address.sun_path, path, length);
	if (path[0] == '@') // abstract address
		address.sun_path[0] = '\0';
	char text[512];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	wattle_cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || n <= 0 || (size_t)n >= sizeof(text))
		return;
	ssize_t sent = sendto(fd, text, (size_t)n, MSG_NOSIGNAL, (const struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
	(void)sent; // continue to serve if the service manager is gone
}
