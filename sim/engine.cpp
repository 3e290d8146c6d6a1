#include "sim/engine.h"

namespace railyard {

template class Engine<Nanoseconds>;
template class EventQueue<Engine<Nanoseconds>::What>;

}  // namespace railyard
