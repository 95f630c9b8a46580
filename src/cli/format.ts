const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** `1.5 GiB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${UNITS[unit]!}`;
}

/** Parameter counts: `1.1 B`, `26.7 M`, `260 K`. */
export function formatCount(count: number): string {
  for (const [size, letter] of [
    [1e9, 'B'],
    [1e6, 'M'],
    [1e3, 'K'],
  ] as const) {
    if (count >= size) return `${(count / size).toFixed(count >= 100 * size ? 0 : 1)} ${letter}`;
  }
  return String(count);
}

/** `42 s`, `3 min 05 s`, `2 h 10 min`. */
export function formatSeconds(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const two = (value: number): string => String(value).padStart(2, '0');
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
}

/** Tokens per second; `–` if not measured. */
export function formatRate(perSecond: number | null): string {
  if (perSecond === null) return '–';
  return perSecond >= 100 ? perSecond.toFixed(0) : perSecond.toFixed(1);
}
