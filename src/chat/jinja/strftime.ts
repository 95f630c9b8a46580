const MONTHS = 'January February March April May June July August September October November December'.split(' ');
const DAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');

const pad = (value: number, width = 2): string => String(value).padStart(width, '0');

const DIRECTIVES: Record<string, (date: Date) => string> = {
  Y: (date) => String(date.getUTCFullYear()),
  y: (date) => pad(date.getUTCFullYear() % 100),
  m: (date) => pad(date.getUTCMonth() + 1),
  B: (date) => MONTHS[date.getUTCMonth()] as string,
  b: (date) => (MONTHS[date.getUTCMonth()] as string).slice(0, 3),
  d: (date) => pad(date.getUTCDate()),
  '-d': (date) => String(date.getUTCDate()),
  A: (date) => DAYS[date.getUTCDay()] as string,
  a: (date) => (DAYS[date.getUTCDay()] as string).slice(0, 3),
  H: (date) => pad(date.getUTCHours()),
  I: (date) => pad(date.getUTCHours() % 12 || 12),
  M: (date) => pad(date.getUTCMinutes()),
  S: (date) => pad(date.getUTCSeconds()),
  p: (date) => (date.getUTCHours() < 12 ? 'AM' : 'PM'),
  '%': () => '%',
};

/** C's `strftime` in English, for a time already in the target time zone; keeps unknown directives. */
export function strftime(date: Date, format: string): string {
  return format.replace(/%(-d|[A-Za-z%])/g, (whole, key: string) => DIRECTIVES[key]?.(date) ?? whole);
}
