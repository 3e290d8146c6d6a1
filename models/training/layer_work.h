#pragma once
// What one layer takes, for one microbatch on one GPU: README.md, "A step".

#include "models/training/communicators.h"
#include "models/training/plan.h"

namespace railyard {

constexpr double activation_element_bytes = 2;

// What a `share` of a collective may hide behind.
struct Cover {
    double work = 0;  // of kernels
    double idle = 0;  // between kernels: a GPU that waits for launches
};

// What a collective of this length leaves visible: what sticks out, and what its SMs take from the work
// beside it.
double exposed_seconds(const Gpu& gpu, double collective, Cover cover, double share = 1);

struct Pass {
    double multiplications = 0;
    double attention = 0;
    double elementwise = 0;
    double launch_wait = 0;
    double tensor = 0;
    double context = 0;
    double expert = 0;
    double offload = 0;  // of a stage's layers together

    double kernels() const { return multiplications + attention + elementwise; }
    double communication() const { return tensor + context + expert + offload; }
    double total() const { return kernels() + launch_wait + communication(); }
    Pass& add(double n, const Pass& each) {
        multiplications += n * each.multiplications;
        attention += n * each.attention;
        elementwise += n * each.elementwise;
        launch_wait += n * each.launch_wait;
        tensor += n * each.tensor;
        context += n * each.context;
        expert += n * each.expert;
        offload += n * each.offload;
        return *this;
    }
};

// One layer's time, or that of a stage's layers together, for one microbatch on one GPU.
struct LayerWork {
    Pass forward;
    Pass recompute;
    Pass backward;
    double weight_gradients = 0;  // of the backward pass; nobody waits for them
    double total() const { return forward.total() + recompute.total() + backward.total(); }
    double kernels() const { return forward.kernels() + recompute.kernels() + backward.kernels(); }
    LayerWork& add(double n, const LayerWork& each) {
        forward.add(n, each.forward);
        recompute.add(n, each.recompute);
        backward.add(n, each.backward);
        weight_gradients += n * each.weight_gradients;
        return *this;
    }
};

LayerWork operator*(double n, const LayerWork& each);
LayerWork operator+(LayerWork a, const LayerWork& b);

// One microbatch through the model's vision encoder and its projector.
LayerWork vision_work(const TransformerModel& model, const ParallelPlan& plan,
                      Communicators& groups);
// Seconds that one image more takes there and back, in the mean over the context's ranks.
double image_seconds(const TransformerModel& model, const ParallelPlan& plan,
                     Communicators& groups);

// `groups` takes the collectives, and notes them where it was told to.
LayerWork layer_work(const TransformerModel& model, const ParallelPlan& plan, Communicators& groups,
                     LayerKind kind);

}  // namespace railyard
