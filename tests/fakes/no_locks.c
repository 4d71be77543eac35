/* A file system without locks, as some cluster file systems are: to be preloaded (LD_PRELOAD). Only the recorder's
 * own kind of lock is refused. */
#undef _FILE_OFFSET_BITS // both names are defined here
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int answer(int fd, int command, long argument)
{
	if (command == F_OFD_GETLK || command == F_OFD_SETLK || command == F_OFD_SETLKW) {
		errno = ENOLCK;
		return -1;
	}
	return (int)syscall(SYS_fcntl, fd, command, argument);
}

EXPORT int fcntl(int fd, int command, ...)
{
	va_list list;
	va_start(list, command);
	long argument = va_arg(list, long);
	va_end(list);
	return answer(fd, command, argument);
}

EXPORT int fcntl64(int fd, int command, ...)
{
	va_list list;
	va_start(list, command);
	long argument = va_arg(list, long);
	va_end(list);
	return answer(fd, command, argument);
}
