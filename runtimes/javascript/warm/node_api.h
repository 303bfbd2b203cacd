/* The part of Node's stable C interface (Node-API) that is used. The symbols are weak, because a shell has none of them. */
#ifndef NODE_API_H
#define NODE_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env env, napi_callback_info info);

enum { NAPI_OK = 0, NAPI_VERSION = 8 };

#pragma weak napi_create_function
#pragma weak napi_set_named_property
#pragma weak napi_create_buffer_copy

int napi_create_function(napi_env env, const char *name, size_t length, napi_callback call, void *data,
			 napi_value *result);
int napi_set_named_property(napi_env env, napi_value object, const char *name, napi_value value);
int napi_create_buffer_copy(napi_env env, size_t size, const void *bytes, void **copy, napi_value *result);

#endif
