// Selects devices by a comma-separated list of names given by the user.
#include "cap/device.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "sensor/gpu_roster.h"
#include "sensor/sensor.h"

#include <errno.h>

struct choice {
	struct cap_devices *devices;
	const struct wattle_env *env;
	enum cap_kind what;
	bool allow_repeats;
	struct cap_device **chosen;
	size_t n;
	struct wattle_error *reterr;
};

static int add(struct choice *choice, const char *name)
{
	struct cap_device *device;
	int r = cap_devices_find(choice->devices, name, choice->what, &device, choice->reterr); // wakes the device
	if (r < 0)
		return r;
	for (size_t i = 0; i < choice->n; i++)
		if (choice->chosen[i] == device)
			return choice->allow_repeats
				? 0
				: error_set(choice->reterr, -EINVAL, "%s is named twice", device->name);
	choice->chosen[choice->n++] = device;
	return 0;
}

// Hidden by CUDA_VISIBLE_DEVICES or a similar variable: on a shared machine such GPUs belong to other users.
static bool is_hidden(const struct sensor_set *sensors, const char *name)
{
	for (size_t s = 0; s < sensors->n_slots; s++)
		for (size_t i = 0; i < sensors->slots[s].n_domains; i++) {
			const struct domain *domain = &sensors->slots[s].domains[i];
			if (domain->unwanted && strcmp(domain->name, name) == 0)
				return true;
		}
	return false;
}

static int add_gpus(struct choice *choice)
{
	const struct cap_devices *devices = choice->devices;
	struct sensor_set sensors;
	struct sensor_options options = {0};
	size_t before = choice->n;
	gpu_environment(&options);
	int r = sensor_set_open(&sensors, choice->env, &options, choice->reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < devices->n; i++) {
		const struct cap_device *device = &devices->devices[i];
		bool is_gpu = strncmp(device->name, "gpu-", strlen("gpu-")) == 0;
		if (device->what == choice->what && is_gpu && !is_hidden(&sensors, device->name))
			r = add(choice, device->name);
	}
	sensor_set_close(&sensors);
	if (r < 0 || choice->n > before)
		return r;
	const char *why = devices->absent_gpus;
	return error_set(choice->reterr, -ENODEV, "no GPU that is visible to this program has a limit of %s%s%s",
		cap_kind_name(choice->what), why[0] != '\0' ? ": " : "; `wattle cap list` shows what can be limited",
		why);
}

int cap_devices_choose(struct cap_devices *devices, const struct wattle_env *env, const char *names, enum cap_kind what,
	bool allow_repeats, struct cap_device **ret_chosen, size_t *ret_n, struct wattle_error *reterr)
{
	struct choice choice = {devices, env, what, allow_repeats, ret_chosen, 0, reterr};
	wattle_cleanup_free char *list = strdup(names);
	if (list == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	char *rest = list;
	for (const char *name; (name = strsep(&rest, ",")) != NULL;) {
		int r = name[0] == '\0'
			? error_set(reterr, -EINVAL, "%s: empty entry; give names separated by single commas", names)
			: strcmp(name, "gpus") == 0 ? add_gpus(&choice)
						    : add(&choice, name);
		if (r < 0)
			return r;
	}
	*ret_n = choice.n;
	return 0;
}
