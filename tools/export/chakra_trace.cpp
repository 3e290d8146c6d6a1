#include "tools/export/chakra_trace.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cmath>

#include "models/training/chakra.pb.h"
#include "sim/check.h"

namespace railyard {

namespace {

// Messages follow each other, each behind its length.
template <class Message>
void append(std::string& bytes, const Message& message) {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.WriteVarint32(static_cast<std::uint32_t>(message.ByteSizeLong()));
    message.SerializeToCodedStream(&out);
}

chakra::Node make_node(std::uint64_t id, const std::string& name, chakra::NodeType type,
                       const std::vector<std::uint64_t>& after) {
    chakra::Node out;
    out.set_id(id);
    out.set_name(name);
    out.set_type(type);
    for (const std::uint64_t before : after) out.add_data_deps(before);
    chakra::AttributeProto& on_host = *out.add_attr();
    on_host.set_name("is_cpu_op");
    on_host.set_bool_val(false);
    return out;
}

// ASTRA-sim's reader takes sizes and types as int64 and ranks and tags as int32.
void add_wide(chakra::Node& node, const char* name, std::int64_t value) {
    chakra::AttributeProto& out = *node.add_attr();
    out.set_name(name);
    out.set_int64_val(value);
}

void add_narrow(chakra::Node& node, const char* name, std::int64_t value) {
    chakra::AttributeProto& out = *node.add_attr();
    out.set_name(name);
    out.set_int32_val(static_cast<std::int32_t>(value));
}

chakra::CollectiveCommType type_of(Collective collective) {
    switch (collective) {
        case Collective::all_reduce:
            return chakra::ALL_REDUCE;
        case Collective::all_gather:
            return chakra::ALL_GATHER;
        case Collective::reduce_scatter:
            return chakra::REDUCE_SCATTER;
        case Collective::all_to_all:
            return chakra::ALL_TO_ALL;
        case Collective::broadcast:
            return chakra::BROADCAST;
        case Collective::reduce:
            return chakra::REDUCE;
        case Collective::send_recv:
            break;
    }
    RY_CHECK(false);
    return chakra::BARRIER;
}

}  // namespace

ChakraTrace::ChakraTrace() {
    chakra::GlobalMetadata head;
    head.set_version("0.0.4");
    append(bytes_, head);
}

ChakraTrace::Id ChakraTrace::compute(const std::string& name, double seconds,
                                     const std::vector<Id>& after) {
    chakra::Node node = make_node(++last_, name, chakra::COMP_NODE, after);
    seconds_ += seconds;
    const std::int64_t until = std::llround(seconds_ * 1e6);
    const std::int64_t micros = std::max<std::int64_t>(1, until - micros_);
    micros_ += micros;
    node.set_duration_micros(static_cast<std::uint64_t>(micros));
    append(bytes_, node);
    return last_;
}

ChakraTrace::Id ChakraTrace::collective(const std::string& name, Collective collective,
                                        std::int64_t bytes, std::int64_t group,
                                        const std::vector<Id>& after) {
    chakra::Node node = make_node(++last_, name, chakra::COMM_COLL_NODE, after);
    add_wide(node, "comm_type", type_of(collective));
    add_wide(node, "comm_size", bytes);
    chakra::AttributeProto& named = *node.add_attr();
    named.set_name("pg_name");
    named.set_string_val(std::to_string(group));
    append(bytes_, node);
    return last_;
}

ChakraTrace::Id ChakraTrace::message(const std::string& name, const Message& message,
                                     const std::vector<Id>& after) {
    chakra::Node node = make_node(
        ++last_, name, message.sent ? chakra::COMM_SEND_NODE : chakra::COMM_RECV_NODE, after);
    add_wide(node, "comm_size", message.bytes);
    add_narrow(node, "comm_src", message.from);
    add_narrow(node, "comm_dst", message.to);
    add_narrow(node, "comm_tag", message.tag);
    append(bytes_, node);
    return last_;
}

}  // namespace railyard
