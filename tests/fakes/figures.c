/* Formats figures as reports do: for each line "UNIT VALUE" of standard input one line. */
#include "base/num.h"
#include "report/report.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *unit;
	void (*write)(struct buf *out, double value);
} figures[] = {
	{"j", human_energy},
	{"w", human_power},
	{"bytes", human_bytes},
	{"percent", human_percent},
	{"duration", human_time},
};

int main(void)
{
	char line[100];
	while (fgets(line, sizeof(line), stdin) != NULL) {
		char *blank = strchr(line, ' ');
		double value;
		line[strcspn(line, "\n")] = '\0';
		if (blank == NULL || num_parse_double(blank + 1, &value) < 0)
			return 1;
		*blank = '\0';
		struct buf out;
		buf_init(&out, 100);
		for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
			if (strcmp(figures[i].unit, line) == 0)
				figures[i].write(&out, value);
		puts(out.data != NULL ? out.data : "");
		buf_finish(&out);
	}
	return 0;
}
