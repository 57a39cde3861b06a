#include "CSimdJSON.h"

#include <simdjson.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

using namespace simdjson;

struct csimdjson_parser {
    dom::parser parser;
    uint8_t *padded;
    size_t padded_capacity;
    size_t max_bytes;
    size_t max_depth;
};

namespace {

// A DOM element and an array's iterator are each a document pointer and an index; these checks keep the casts true.
using iterator = dom::array::iterator;
static_assert(sizeof(dom::element) == sizeof(csimdjson_value) && std::is_trivially_copyable_v<dom::element>);
static_assert(sizeof(iterator) == sizeof(csimdjson_value) && std::is_trivially_copyable_v<iterator>);

template <typename To, typename From> To bits(const From &from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(static_cast<void *>(&to), static_cast<const void *>(&from), sizeof(To));
    return to;
}

dom::element element(csimdjson_value value) { return bits<dom::element>(value); }

csimdjson_status status(error_code code) {
    switch (code) {
    case SUCCESS: return CSIMDJSON_OK;
    case EMPTY: return CSIMDJSON_EMPTY;
    case UTF8_ERROR: return CSIMDJSON_NOT_UTF8;
    case DEPTH_ERROR: return CSIMDJSON_TOO_DEEP;
    case CAPACITY: return CSIMDJSON_TOO_LARGE;
    case MEMALLOC: return CSIMDJSON_NO_MEMORY;
    case NUMBER_ERROR: return CSIMDJSON_NUMBER;
    case STRING_ERROR: case UNCLOSED_STRING: case UNESCAPED_CHARS: return CSIMDJSON_STRING;
    case NO_SUCH_FIELD: return CSIMDJSON_ABSENT;
    case INCORRECT_TYPE: return CSIMDJSON_WRONG_TYPE;
    default: return CSIMDJSON_SYNTAX;
    }
}

}  // namespace

extern "C" csimdjson_parser *csimdjson_new(size_t max_bytes, size_t max_depth) {
    auto *made = new (std::nothrow) csimdjson_parser{dom::parser(), nullptr, 0, max_bytes, max_depth};
    if (made == nullptr) { return nullptr; }
    if (made->parser.allocate(4096, max_depth) != SUCCESS) {
        delete made;
        return nullptr;
    }
    return made;
}

extern "C" void csimdjson_free(csimdjson_parser *parser) {
    if (parser == nullptr) { return; }
    std::free(parser->padded);
    delete parser;
}

extern "C" void csimdjson_shrink(csimdjson_parser *parser) {
    std::free(parser->padded);
    parser->padded = nullptr;
    parser->padded_capacity = 0;
    parser->parser = dom::parser();
}

extern "C" csimdjson_status csimdjson_parse(
    csimdjson_parser *parser, const uint8_t *bytes, size_t count, csimdjson_value *root) {
    if (count == 0) { return CSIMDJSON_EMPTY; }
    if (count > parser->max_bytes) { return CSIMDJSON_TOO_LARGE; }
    // The depth limit lives in the implementation object, which this allocation makes; later growth keeps it.
    if (parser->parser.capacity() == 0 && parser->parser.allocate(4096, parser->max_depth) != SUCCESS) {
        return CSIMDJSON_NO_MEMORY;
    }
    const size_t needed = count + SIMDJSON_PADDING;
    if (needed > parser->padded_capacity) {
        auto *grown = static_cast<uint8_t *>(std::malloc(needed));
        if (grown == nullptr) { return CSIMDJSON_NO_MEMORY; }
        std::free(parser->padded);
        parser->padded = grown;
        parser->padded_capacity = needed;
    }
    std::memcpy(parser->padded, bytes, count);
    std::memset(parser->padded + count, 0, SIMDJSON_PADDING);
    dom::element parsed;
    const auto code = parser->parser.parse(parser->padded, count, false).get(parsed);
    if (code == SUCCESS) { *root = bits<csimdjson_value>(parsed); }
    return status(code);
}

extern "C" csimdjson_kind csimdjson_kind_of(csimdjson_value value) {
    switch (element(value).type()) {
    case dom::element_type::NULL_VALUE: return CSIMDJSON_KIND_NULL;
    case dom::element_type::BOOL: return CSIMDJSON_KIND_BOOL;
    case dom::element_type::INT64: return CSIMDJSON_KIND_INTEGER;
    case dom::element_type::UINT64: return CSIMDJSON_KIND_NUMBER;
    case dom::element_type::DOUBLE: return CSIMDJSON_KIND_NUMBER;
    case dom::element_type::STRING: return CSIMDJSON_KIND_STRING;
    case dom::element_type::ARRAY: return CSIMDJSON_KIND_ARRAY;
    case dom::element_type::OBJECT: return CSIMDJSON_KIND_OBJECT;
    }
    return CSIMDJSON_KIND_NULL;
}

extern "C" csimdjson_status csimdjson_member(
    csimdjson_value object, const uint8_t *name, size_t count, csimdjson_value *member) {
    dom::object members;
    const auto code = element(object).get(members);
    if (code != SUCCESS) { return status(code); }
    const std::string_view wanted(reinterpret_cast<const char *>(name), count);
    bool found = false;
    for (auto field = members.begin(); field != members.end(); ++field) {
        if (!field.key_equals(wanted)) { continue; }
        if (found) { return CSIMDJSON_DUPLICATE; }
        found = true;
        *member = bits<csimdjson_value>(field.value());
    }
    return found ? CSIMDJSON_OK : CSIMDJSON_ABSENT;
}

extern "C" csimdjson_status csimdjson_string(csimdjson_value value, const uint8_t **bytes, size_t *count) {
    std::string_view text;
    const auto code = element(value).get(text);
    if (code != SUCCESS) { return status(code); }
    *bytes = reinterpret_cast<const uint8_t *>(text.data());
    *count = text.size();
    return CSIMDJSON_OK;
}

extern "C" csimdjson_status csimdjson_int64(csimdjson_value value, int64_t *number) {
    // An integer above INT64_MAX answers NUMBER_OUT_OF_RANGE, which to a caller is a number of another kind.
    const auto parsed = element(value);
    if (!parsed.is<int64_t>()) { return CSIMDJSON_WRONG_TYPE; }
    return status(parsed.get(*number));
}

extern "C" csimdjson_status csimdjson_bool(csimdjson_value value, int *truth) {
    bool parsed = false;
    const auto code = element(value).get(parsed);
    if (code == SUCCESS) { *truth = parsed ? 1 : 0; }
    return status(code);
}

extern "C" csimdjson_status csimdjson_elements(csimdjson_value array, csimdjson_walk *walk) {
    dom::array elements;
    const auto code = element(array).get(elements);
    if (code != SUCCESS) { return status(code); }
    walk->next = bits<csimdjson_value>(elements.begin());
    walk->end = bits<csimdjson_value>(elements.end());
    return CSIMDJSON_OK;
}

extern "C" csimdjson_status csimdjson_next(csimdjson_walk *walk, csimdjson_value *found) {
    auto here = bits<iterator>(walk->next);
    if (!(here != bits<iterator>(walk->end))) { return CSIMDJSON_ABSENT; }
    *found = bits<csimdjson_value>(*here);
    ++here;
    walk->next = bits<csimdjson_value>(here);
    return CSIMDJSON_OK;
}

extern "C" csimdjson_status csimdjson_minify(
    csimdjson_value value, void *context, void (*sink)(void *context, const uint8_t *bytes, size_t count)) {
    // The formatter allocates, and says so by an exception; it ends here.
    try {
        const std::string text = to_string(element(value));
        sink(context, reinterpret_cast<const uint8_t *>(text.data()), text.size());
        return CSIMDJSON_OK;
    } catch (...) {
        return CSIMDJSON_NO_MEMORY;
    }
}
