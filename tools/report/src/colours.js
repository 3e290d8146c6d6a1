// One colour a word, the same in every chart.

export const ledgerColours = {
  productive: "#2a9d74",
  exposed_communication: "#4f83e0",
  pipeline_bubble: "#8db4f2",
  straggler_wait: "#b39ddb",
  degraded: "#7e57c2",
  throttled: "#cf5f8a",
  data_wait: "#26a6b8",
  storm_stall: "#c2489a",
  checkpoint_stall: "#f0b429",
  lost_work: "#d64545",
  detection: "#f08a5d",
  replacement: "#d9713c",
  requeue_wait: "#a8385d",
  restart: "#b7791f",
  restore: "#9c7b4a",
  planned_maintenance: "#6b87a6",
  spare: "#a9b4c2",
  repair: "#76808c",
  // Of many jobs.
  idle: "#c5ccd6",
  gang_wait: "#5b8c9e",
  fragmentation: "#8e6bbf",
  partial_hold: "#d98cb3",
  drained: "#4a5d78",
  health_check: "#3a9e9e",
  contention: "#2f5fb3",
};

export const phaseColours = {
  running: ledgerColours.productive,
  checkpointing: ledgerColours.checkpoint_stall,
  storm_stall: ledgerColours.storm_stall,
  detection: ledgerColours.detection,
  replacement: ledgerColours.replacement,
  requeue_wait: ledgerColours.requeue_wait,
  restart: ledgerColours.restart,
  restore: ledgerColours.restore,
  maintenance: ledgerColours.planned_maintenance,
  first_batch: ledgerColours.data_wait,
  pause: ledgerColours.planned_maintenance,
};

export const series = ["#4f83e0", "#f0923b", "#2a9d74", "#c2489a", "#7e57c2", "#26a6b8", "#b7791f", "#76808c"];
// From low to high: of cells with text in them, and of points and lines on either theme's ground.
export const cellScale = ["#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725"];
export const lineScale = ["#6a5acd", "#4ea8de", "#3fbf94", "#e9b949", "#e4572e"];
