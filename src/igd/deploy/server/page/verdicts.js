// What a p-value means at an accepted rate of false alarms. The same arithmetic as igd/calibration.py: exact, on counts.

const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5];

// The rates one can choose: round ones, the model's own, and the lowest that its calibration images can promise.
export function ratesOf(model) {
  const rates = STEPS.filter((rate) => rate > model.lowest_rate);
  return [...new Set([model.lowest_rate, model.max_false_alarms, ...rates])].sort((a, b) => a - b);
}

export function isAnomalous(pValue, rate, model) {
  const places = model.calibration_images + 1;
  const accepted = Math.max(rate, model.lowest_rate);
  return Math.round(pValue * places) <= Math.floor(accepted * places + 1e-9);
}

export function wordOf(anomalous) {
  return anomalous ? "Anomalous" : "Normal";
}

export function percent(rate) {
  return `${Number((100 * rate).toPrecision(2))} %`;
}

// '1 in 20 normal images looks', '3 in 10 normal images look'.
export function sharePhrase(rate, verb) {
  const tenths = Math.round(10 * rate);
  const one = rate < 0.15 || Math.abs(1 / rate - Math.round(1 / rate)) < 0.05;
  return one ? `1 in ${Math.round(1 / rate)} normal images ${verb}s` : `${tenths} in 10 normal images ${verb}`;
}

export function meaningOf(pValue, model) {
  if (pValue < 1.5 * model.lowest_rate) {
    return `None of the ${model.calibration_images} normal images kept for comparison looks this unusual.`;
  }
  if (pValue > 0.5) return "Most normal images look at least this unusual.";
  return `About ${sharePhrase(pValue, "look")} at least this unusual.`;
}

// Where a p-value stands on a scale from 1 (usual, left) to the model's lowest (right), in per cent.
export function position(pValue, model) {
  return Math.min(99, Math.max(1, (100 * Math.log(pValue)) / Math.log(model.lowest_rate)));
}

export function toCsv(rows) {
  const cell = (value) => {
    const text = /^[=+\-@\t\r]/.test(value) && typeof value === "string" ? `'${value}` : String(value); // no formulas
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const names = Object.keys(rows[0]);
  return [names, ...rows.map((row) => names.map((name) => row[name]))].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}
