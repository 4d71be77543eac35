#include "powercap_sim.h"

#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sim_fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("powercap_sim: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	exit(2);
}

static struct zone *find_zone(struct sim *sim, const char *name)
{
	for (int i = 0; i < sim->n_zones; i++)
		if (strcmp(sim->zones[i].name, name) == 0)
			return &sim->zones[i];
	sim_fail("no such zone: %s (declare it first, with --zone)", name);
}

static void add_zone(struct sim *sim, const char *name, const char *load)
{
	if (sim->n_zones == ZONES_MAX)
		sim_fail("more than %d zones", ZONES_MAX);
	struct zone *zone = &sim->zones[sim->n_zones];
	*zone = (struct zone){
		.range_uj = UINT64_C(262143328850),
		.start_uj = 1000000,
		.quantum_uj = 61,
		.vanish = {NAN, NAN},
		.garbage = {NAN, NAN},
		.stuck = {NAN, NAN},
		.reset_s = NAN,
		.fd = -1,
	};
	if (!load_parse(load, &zone->load))
		sim_fail("--zone %s=%s: the load is no sum of WATTS[*sin|step|ramp[@SECONDS]], or may become negative",
			name, load);
	snprintf(zone->name, sizeof(zone->name), "%s", name);
	char *slash = strrchr(zone->name, '/');
	if (slash != NULL) {
		*slash = '\0';
		zone->parent = find_zone(sim, zone->name);
		*slash = '/';
	}
	if (zone->parent != NULL)
		snprintf(zone->id, sizeof(zone->id), "%.40s:%x", zone->parent->id,
			(unsigned)zone->parent->n_children++);
	else
		snprintf(zone->id, sizeof(zone->id), "intel-rapl:%x", (unsigned)sim->n_top++);
	sim->n_zones++;
}

static double number(const char *text, char **ret_end)
{
	double value = strtod(text, ret_end);
	if (*ret_end == text || !isfinite(value) || value < 0)
		sim_fail("not a number: %s", text);
	return value;
}

static struct window parse_window(const char *text)
{
	char *end;
	struct window window = {.from_s = number(text, &end)};
	if (*end != ':')
		sim_fail("not FROM:TO: %s", text);
	window.to_s = number(end + 1, &end);
	return window;
}

static uint64_t parse_uj(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);
	if (end == text || *end != '\0')
		sim_fail("not a number of microjoules: %s", text);
	return value;
}

// "package-0=VALUE": cuts the name off; every option about a zone has this form.
static const char *split(char *argument)
{
	char *equals = strchr(argument, '=');
	if (equals == NULL)
		sim_fail("not ZONE=VALUE: %s", argument);
	*equals = '\0';
	return equals + 1;
}

static void take_zone_option(struct sim *sim, int option, char *argument)
{
	const char *value = split(argument);
	char *end;
	if (option == 'z') {
		add_zone(sim, argument, value);
		return;
	}
	struct zone *zone = find_zone(sim, argument);
	switch (option) {
	case 'R':
		zone->range_uj = parse_uj(value);
		break;
	case 'S':
		zone->start_uj = parse_uj(value);
		break;
	case 'q':
		zone->quantum_uj = parse_uj(value);
		break;
	case 'v':
		zone->vanish = parse_window(value);
		break;
	case 'g':
		zone->garbage = parse_window(value);
		break;
	case 'k':
		zone->stuck = parse_window(value);
		break;
	case 'b':
		zone->busy_w = number(value, &end);
		break;
	default:
		zone->reset_s = number(value, &end);
	}
	if (zone->quantum_uj == 0)
		sim_fail("--quantum of %s must be at least 1", zone->name);
}

void sim_parse_options(struct sim *sim, int argc, char **argv)
{
	static const struct option options[] = {
		{"seconds", required_argument, NULL, 's'},
		{"tick", required_argument, NULL, 't'},
		{"rename", no_argument, NULL, 'r'},
		{"manual-clock", no_argument, NULL, 'o'},
		{"zone", required_argument, NULL, 'z'},
		{"range", required_argument, NULL, 'R'},
		{"start", required_argument, NULL, 'S'},
		{"quantum", required_argument, NULL, 'q'},
		{"vanish", required_argument, NULL, 'v'},
		{"garbage", required_argument, NULL, 'g'},
		{"stuck", required_argument, NULL, 'k'},
		{"reset", required_argument, NULL, 'x'},
		{"busy", required_argument, NULL, 'b'},
		{"history", required_argument, NULL, 'h'},
		{0},
	};
	char *end;
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
		if (option == 's')
			sim->seconds = number(optarg, &end);
		else if (option == 't')
			sim->tick_s = number(optarg, &end) / 1e6;
		else if (option == 'h')
			sim->history_path = optarg;
		else if (option == 'r')
			sim->by_rename = true;
		else if (option == 'o')
			sim->has_manual_clock = true;
		else if (option == '?')
			exit(2);
		else
			take_zone_option(sim, option, optarg);
	}
	if (optind != argc - 1 || sim->n_zones == 0 || !(sim->tick_s > 0))
		sim_fail("usage: powercap_sim DIR --zone NAME=LOAD [OPTIONS], see the head of powercap_sim.c");
	sim->dir = argv[optind];
}
