#include "monitor/internal.h"

#include "base/file.h"
#include "base/num.h"
#include "base/redact.h"
#include "base/utf8.h"
#include "base/util.h"

#include <stdio.h>
#include <unistd.h>

// Includes C1 controls: some terminals interpret them, as all do C0 controls.
static bool is_control(const char *text)
{
	const unsigned char first = (unsigned char)text[0];
	return first < 0x20 || first == 0x7f || (first == 0xc2 && (unsigned char)text[1] < 0xa0);
}

// Copies whole UTF-8 characters only. Truncated text ends in "…" if that fits.
static size_t copy_clean(const char *text, size_t size, char *out, size_t out_size)
{
	static const char mark[] = "…";
	size_t used = 0, marked = 0; // marked: length that leaves room for the mark
	for (size_t i = 0, length; i<size; i += length> 0 ? length : 1) {
		length = utf8_length(text + i); // 1 for a NUL
		bool is_fine = length > 0 && !is_control(text + i);
		if (used + sizeof(mark) <= out_size)
			marked = used;
		if (used + (is_fine ? length : 1) >= out_size) {
			bool fits = out_size >= sizeof(mark);
			used = fits ? marked : used;
			memcpy(out + used, mark, fits ? sizeof(mark) - 1 : 0);
			used += fits ? sizeof(mark) - 1 : 0;
			break;
		}
		if (is_fine)
			memcpy(out + used, text + i, length);
		else
			out[used] = text[i] == '\0' ? ' ' : '?';
		used += is_fine ? length : 1;
	}
	out[used] = '\0';
	return used;
}

bool cmdline_join(const char *words, size_t size, char *out, size_t out_size)
{
	while (size > 0 && words[size - 1] == '\0')
		size--;
	size_t used = copy_clean(words, size, out, out_size);
	while (used > 0 && out[used - 1] == ' ')
		out[--used] = '\0';
	return used > 0;
}

static void put_name(const char *comm, char *out, size_t out_size)
{
	size_t used = copy_clean(comm, strlen(comm), out + 1, out_size - 2);
	out[0] = '[';
	memcpy(out + 1 + used, "]", 2);
}

static uid_t uid_in(const char *status)
{
	const char *line = strstr(status, "\nUid:");
	uint64_t uid;
	if (line == NULL)
		return (uid_t)-1;
	line += strlen("\nUid:");
	line += strspn(line, "\t ");
	bool known = num_parse_sysfs_u64(line, strcspn(line, "\t\n"), &uid) == 0 && uid <= UINT32_MAX;
	return known ? (uid_t)uid : (uid_t)-1;
}

bool monitor_shows_arguments(enum monitor_arguments which, uid_t uid)
{
	bool is_own = uid != (uid_t)-1 && uid == geteuid() && uid != 0;
	return which == MONITOR_ARGUMENTS_ALL || (which == MONITOR_ARGUMENTS_OWN && is_own);
}

// False: the process has no arguments.
static bool put_command(struct process_table *table, const char *words, size_t size, bool is_cut,
	struct monitor_process *process)
{
	struct buf *shown = &table->shown;
	buf_clear(shown);
	if (monitor_shows_arguments(table->arguments, process->uid))
		redact_words(words, size, is_cut, shown);
	else
		redact_to_name(words, size, shown);
	return shown->failed == 0 && shown->data != NULL &&
		cmdline_join(shown->data, shown->size, process->command, sizeof(process->command));
}

/* Reads the user after the arguments. A process changes its user before it executes that user's program, so arguments are
 * never shown under the previous user. */
void cmdline_read(struct process_table *table, const char *comm, struct monitor_process *process)
{
	char path[32], words[4096], status[1024];
	snprintf(path, sizeof(path), "%d/cmdline", (int)process->pid);
	ssize_t length = file_read_in(table->env->procfs_fd, path, words, sizeof(words));
	snprintf(path, sizeof(path), "%d/status", (int)process->pid);
	if (file_read_in(table->env->procfs_fd, path, status, sizeof(status)) > 0)
		process->uid = uid_in(status);
	bool is_cut = length >= (ssize_t)sizeof(words) - 1;
	if (length <= 0 || !put_command(table, words, (size_t)length, is_cut, process))
		put_name(comm, process->command, sizeof(process->command));
}
