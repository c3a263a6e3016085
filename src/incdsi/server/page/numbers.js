// Numbers as people read them.

const whole = new Intl.NumberFormat("en");

export const count = (value) => whole.format(value);

/** "1 document", "4,402 documents". */
export const plural = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** Milliseconds with as many digits as matter: "0.42", "8.3", "120". */
export function milliseconds(value) {
  if (value >= 100) return count(Math.round(value));
  return value.toFixed(value < 1 ? 2 : 1);
}

/** Two decimals, with a minus sign as it is printed. */
export const decimal = (value) => value.toFixed(2).replace("-", "−");
