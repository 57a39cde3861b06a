#include "CSimdJSON.h"
#include <simdjson.h>
extern "C" const char *csimdjson_version(void) { return "placeholder"; }
