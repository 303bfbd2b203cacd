#include "module_proxies.h"

#include <stdlib.h>

struct module_proxy {
	PyObject *name, *module, *object;
	PyObject *names; /* a copy of the module's names, as they were */
};

static struct module_proxy *all;
static size_t count;

static PyObject *keep(PyObject *object)
{
	Py_IncRef(object);
	return object;
}

bool module_proxies_prepare(PyObject *of)
{
	PyObject *modules = PyImport_GetModuleDict(), *name, *object;
	ssize_t at = 0;

	all = calloc((size_t)PyDict_Size(of), sizeof(*all));
	while (all && PyDict_Next(of, &at, &name, &object)) {
		PyObject *module = PyDict_GetItem(modules, name);
		PyObject *names = module ? PyDict_Copy(PyModule_GetDict(module)) : NULL;

		if (!names)
			return false;
		all[count++] = (struct module_proxy){keep(name), keep(module), keep(object), names};
	}
	return all != NULL;
}

/* Takes no references: their counters are in pages that are shared with the zygote. */
static bool is_unchanged(const struct module_proxy *one)
{
	PyObject *names = PyModule_GetDict(one->module), *name, *value, *old_name, *old_value;
	ssize_t at = 0, old_at = 0;

	if (PyDict_Size(names) != PyDict_Size(one->names))
		return false;
	while (PyDict_Next(one->names, &old_at, &old_name, &old_value))
		if (!PyDict_Next(names, &at, &name, &value) || name != old_name || value != old_value)
			return false;
	return true;
}

void module_proxies_install(void)
{
	PyObject *modules = PyImport_GetModuleDict();

	for (size_t i = 0; i < count; i++)
		if (PyDict_GetItem(modules, all[i].name) == all[i].module && is_unchanged(&all[i]) &&
		    PyDict_SetItem(modules, all[i].name, all[i].object) < 0)
			PyErr_Clear();
}
