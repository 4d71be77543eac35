#include "helper/helper.h"

#include "base/buf.h"
#include "base/suggest.h"
#include "base/util.h"
#include "proto/protocol.h"

#include <errno.h>
#include <stddef.h>

static const struct {
	const char *name, *argument, *help;
	size_t offset; // of a const char * member
} texts[] = {
	{"--socket", "PATH", "socket to listen on (default " PROTO_SOCKET_DEFAULT ")",
		offsetof(struct helper_options, socket)},
	{"--policy", "FILE",
		"access policy, reloaded on SIGHUP; default: members of\ngroup wattle may read counters every 10 ms, nobody may set limits",
		offsetof(struct helper_options, policy)},
	{"--check-policy", "FILE",
		"check a policy file, print what it allows, and exit with\nstatus 0 if it is valid, 1 if not",
		offsetof(struct helper_options, check_policy)},
	{"--state", "DIR", "journal of limits (default /var/lib/wattle)", offsetof(struct helper_options, state)},
	{"--nvml", "LIB", "library to load instead of libnvidia-ml.so.1", offsetof(struct helper_options, nvml)},
	{"--sysfs", "DIR", "folder to use instead of /sys", offsetof(struct helper_options, sysfs)},
	{"--procfs", "DIR", "folder to use instead of /proc", offsetof(struct helper_options, procfs)},
};
static const struct {
	const char *name, *help;
	size_t offset; // of a bool member
} switches[] = {
	{"--version", "print the version", offsetof(struct helper_options, version)},
	{"--help", "print this help", offsetof(struct helper_options, help)},
	{"--manual", "print the manual page", offsetof(struct helper_options, manual)},
};

// Parses "--name VALUE" or "--name=VALUE". 1: parsed, *at is at its last word.
static int take_text(char **argv, int *at, struct helper_options *options, struct wattle_error *reterr)
{
	const char *word = argv[*at];
	size_t length = strcspn(word, "=");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (strlen(texts[i].name) != length || strncmp(texts[i].name, word, length) != 0)
			continue;
		const char *value = word[length] == '=' ? word + length + 1 : argv[++*at];
		if (value == NULL || value[0] == '\0')
			return error_set(reterr, -EINVAL, "%s needs a value; see `wattled --help`",
				texts[i].name);
		*(const char **)((char *)options + texts[i].offset) = value;
		return 1;
	}
	return 0;
}

static bool take_switch(const char *word, struct helper_options *options)
{
	for (size_t i = 0; i < ARRAY_SIZE(switches); i++) {
		if (strcmp(switches[i].name, word) != 0)
			continue;
		*(bool *)((char *)options + switches[i].offset) = true;
		return true;
	}
	return false;
}

static int unknown(const char *word, struct wattle_error *reterr)
{
	struct suggest suggest;
	char meant[SUGGEST_WORD_MAX + 32];
	suggest_begin(&suggest, word, strcspn(word, "="));
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		suggest_offer(&suggest, texts[i].name, strlen(texts[i].name));
	for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
		suggest_offer(&suggest, switches[i].name, strlen(switches[i].name));
	return error_set(reterr, -EINVAL, "unknown option '%s'%s; see `wattled --help`", word,
		suggest_text(&suggest, "", meant));
}

int helper_options_parse(int argc, char **argv, struct helper_options *ret_options, struct wattle_error *reterr)
{
	struct helper_options options = {0};
	for (int i = 1; i < argc; i++) {
		const char *word = strcmp(argv[i], "-h") == 0 ? "--help" : argv[i];
		if (take_switch(word, &options))
			continue;
		int r = take_text(argv, &i, &options, reterr);
		if (r < 0)
			return r;
		if (r == 0)
			return unknown(word, reterr);
	}
	*ret_options = options;
	return 0;
}

/* ---- help and manual ---- */

static const char summary[] = "Reads energy counters and sets power limits for users whom the policy permits.";
static const char behaviour[] =
	"Runs in the foreground and logs to standard error. On SIGTERM or SIGINT it restores all limits and exits.\n"
	"SIGHUP reloads the policy file and keeps limits and connections.\n"
	"It ignores WATTLE_* variables.";

static const char rest_of_manual[] =
	".SH POLICY\n"
	"One rule per line; # begins a comment. The first rule that matches the user and the request decides. "
	"Without a match, wattled denies the request.\n"
	".PP\n.nf\n"
	"WHO read [every TIME]\n"
	"WHO cap DEVICE [power | clocks] [FROM..TO]\n"
	"WHO nothing\n"
	".fi\n.PP\n"
	"WHO is user NAME, group NAME or others; DEVICE a name such as gpu-0, the UUID of a GPU, gpus, packages or any; TIME "
	"1ms to 1h; the range is in W, or MHz with clocks. Only root may own and write the file.\n"
	".SH EXIT STATUS\n"
	"0 after SIGTERM or SIGINT, 1 if it could not start or one of its two processes was killed, 2 for invalid options. With "
	"--check-policy 0 if the file is valid, 1 if it is not or cannot be read.\n"
	".SH FILES\n"
	".TP\n.B /var/lib/wattle/caps\nThe journal: the previous value and the owner of each limit.\n"
	".SH SEE ALSO\n.BR wattle (1)\n";

// Indents the further lines of a text.
static void add_indented(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++)
		buf_str(out, *text == '\n' ? "\n                       " : (const char[]){*text, '\0'});
}

void helper_help(struct buf *out)
{
	buf_printf(out, "usage: wattled [OPTIONS]\n\n%s\n%s\n\n", summary, behaviour);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		buf_printf(out, "  %-14s %-4s  ", texts[i].name, texts[i].argument);
		add_indented(out, texts[i].help);
		buf_char(out, '\n');
	}
	for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
		buf_printf(out, "  %-19s  %s\n", switches[i].name, switches[i].help);
}

// roff prints an unescaped dash as a hyphen.
static void add_roff(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++)
		buf_str(out, *text == '-' ? "\\-" : (const char[]){*text, '\0'});
}

static void add_option(struct buf *out, const char *name, const char *argument, const char *help)
{
	buf_str(out, ".TP\n\\fB");
	add_roff(out, name);
	buf_printf(out, "\\fR \\fI%s\\fR\n", argument);
	add_roff(out, help);
	buf_char(out, '\n');
}

void helper_manual(struct buf *out)
{
	buf_str(out,
		".TH WATTLED 8 \"" WATTLE_DATE "\" \"wattle " WATTLE_VERSION "\" \"System Administration\"\n"
		".SH NAME\nwattled \\- energy counters and power limits for users\n"
		".SH SYNOPSIS\n.B wattled\n[OPTIONS]\n.SH DESCRIPTION\n");
	add_roff(out, summary);
	buf_char(out, '\n');
	add_roff(out, behaviour);
	buf_str(out, "\n.SH OPTIONS\n");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		add_option(out, texts[i].name, texts[i].argument, texts[i].help);
	for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
		add_option(out, switches[i].name, "", switches[i].help);
	add_roff(out, rest_of_manual);
}
