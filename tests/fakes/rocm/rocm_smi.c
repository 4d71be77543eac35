/* A fake librocm_smi64.so: cards from a text file named in WATTLE_FAKE_ROCM, with constant power and a counter that
 * is its integral since the library was initialised. README.md describes the file. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Declared and defined at once: no other file includes a header of it.
#define EXPORT(name, ...)                                                                                              \
	__attribute__((visibility("default"))) int name(__VA_ARGS__);                                                  \
	int name(__VA_ARGS__)

enum { CARDS_MAX = 8, ERRORS_MAX = 8 };
enum { SUCCESS = 0, INVALID_ARGS = 1, NOT_SUPPORTED = 2, INIT_ERROR = 8 };

struct card {
	unsigned int domain, bus, device, function;
	char name[64];
	unsigned long long unique_id, start_units, memory_total, memory_used;
	double power_w, temperature_c, memory_temperature_c; // 0: no memory information
	unsigned int busy_percent;
};

static struct {
	struct card cards[CARDS_MAX];
	uint32_t n;
	struct {
		char function[64];
		int code;
	} errors[ERRORS_MAX];
	size_t n_errors;
	int64_t start_ns;
	bool initialised;
} fake;

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void read_line(const char *line)
{
	char function[64];
	int code;
	struct card *card = &fake.cards[fake.n > 0 ? fake.n - 1 : 0];
	if (strncmp(line, "gpu", 3) == 0 && fake.n < CARDS_MAX)
		fake.cards[fake.n++] = (struct card){.temperature_c = 40};
	else if (sscanf(line, "error %63s %d", function, &code) == 2 && fake.n_errors < ERRORS_MAX) {
		memcpy(fake.errors[fake.n_errors].function, function, sizeof(function));
		fake.errors[fake.n_errors++].code = code;
	}
	sscanf(line, "address %x:%x:%x.%x", &card->domain, &card->bus, &card->device, &card->function);
	sscanf(line, "name %63[^\n]", card->name);
	sscanf(line, "unique_id %llx", &card->unique_id);
	sscanf(line, "start_units %llu", &card->start_units);
	sscanf(line, "power_w %lf", &card->power_w);
	sscanf(line, "temperature_c %lf", &card->temperature_c);
	sscanf(line, "memory_temperature_c %lf", &card->memory_temperature_c);
	sscanf(line, "busy_percent %u", &card->busy_percent);
	sscanf(line, "memory_bytes %llu %llu", &card->memory_used, &card->memory_total);
}

static int error_of(const char *function)
{
	for (size_t i = 0; i < fake.n_errors; i++)
		if (strcmp(fake.errors[i].function, function) == 0)
			return fake.errors[i].code;
	return SUCCESS;
}

static int card_of(const char *function, uint32_t index, const struct card **ret_card)
{
	if (!fake.initialised)
		return INIT_ERROR;
	if (index >= fake.n)
		return INVALID_ARGS;
	*ret_card = &fake.cards[index];
	return error_of(function);
}

#define CARD(index)                                                                                                    \
	const struct card *card;                                                                                       \
	int code = card_of(__func__, index, &card);                                                                    \
	if (code != SUCCESS)                                                                                           \
	return code

EXPORT(rsmi_init, uint64_t flags)
{
	char line[256];
	const char *path = getenv("WATTLE_FAKE_ROCM");
	FILE *file = path != NULL ? fopen(path, "re") : NULL;
	memset(&fake, 0, sizeof(fake));
	if (file == NULL)
		return INIT_ERROR;
	while (fgets(line, sizeof(line), file) != NULL)
		read_line(line);
	fclose(file);
	fake.start_ns = now_ns();
	fake.initialised = true;
	return error_of("rsmi_init");
}

EXPORT(rsmi_shut_down, void)
{
	fake.initialised = false;
	return SUCCESS;
}

EXPORT(rsmi_num_monitor_devices, uint32_t *count)
{
	*count = fake.n;
	return fake.initialised ? SUCCESS : INIT_ERROR;
}

EXPORT(rsmi_dev_pci_id_get, uint32_t index, uint64_t *id)
{
	CARD(index);
	*id = (uint64_t)card->domain << 32 | card->bus << 8 | card->device << 3 | card->function;
	return SUCCESS;
}

EXPORT(rsmi_dev_name_get, uint32_t index, char *name, size_t size)
{
	CARD(index);
	snprintf(name, size, "%s", card->name);
	return SUCCESS;
}

EXPORT(rsmi_dev_unique_id_get, uint32_t index, uint64_t *id)
{
	CARD(index);
	*id = card->unique_id;
	return card->unique_id != 0 ? SUCCESS : NOT_SUPPORTED;
}

EXPORT(rsmi_dev_energy_count_get, uint32_t index, uint64_t *counter, float *resolution_uj, uint64_t *time_ns)
{
	CARD(index);
	int64_t t_ns = now_ns();
	*counter = card->start_units + (uint64_t)(card->power_w * (double)(t_ns - fake.start_ns) / 1e9 * 65536);
	*resolution_uj = 15.3F;
	*time_ns = (uint64_t)t_ns;
	return SUCCESS;
}

EXPORT(rsmi_dev_power_ave_get, uint32_t index, uint32_t sensor, uint64_t *power_uw)
{
	CARD(index);
	*power_uw = (uint64_t)(card->power_w * 1e6);
	return SUCCESS;
}

EXPORT(rsmi_dev_busy_percent_get, uint32_t index, uint32_t *percent)
{
	CARD(index);
	*percent = card->busy_percent;
	return SUCCESS;
}

EXPORT(rsmi_dev_memory_usage_get, uint32_t index, int type, uint64_t *bytes)
{
	CARD(index);
	*bytes = card->memory_used;
	return type == 0 ? SUCCESS : INVALID_ARGS;
}

EXPORT(rsmi_dev_memory_total_get, uint32_t index, int type, uint64_t *bytes)
{
	CARD(index);
	*bytes = card->memory_total;
	return type == 0 ? SUCCESS : INVALID_ARGS;
}

EXPORT(rsmi_dev_temp_metric_get, uint32_t index, uint32_t sensor, int metric, int64_t *millidegrees)
{
	CARD(index);
	bool is_of_memory = sensor == 2 && card->memory_temperature_c > 0;
	*millidegrees = (int64_t)((is_of_memory ? card->memory_temperature_c : card->temperature_c) * 1000);
	return (sensor == 0 || is_of_memory) && metric == 0 ? SUCCESS : NOT_SUPPORTED;
}
