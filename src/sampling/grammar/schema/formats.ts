const octet = '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const ipv4 = `(?:${octet}\\.){3}${octet}`;
const leapYear = '(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)';
const date = `(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|${leapYear}-02-29)`;
const hour = '(?:[01][0-9]|2[0-3])';
const minute = '[0-5][0-9]';
const fraction = '(?:\\.[0-9]+)?';

const seconds = '[0-9]+S';
const minutes = `(?:[0-9]+M(?:${seconds})?)`;
const hours = `(?:[0-9]+H(?:${minutes})?)`;
const clock = `T(?:${hours}|${minutes}|${seconds})`;
const days = '[0-9]+D';
const months = `(?:[0-9]+M(?:${days})?)`;
const years = `(?:[0-9]+Y(?:${months})?)`;
const duration = `P(?:[0-9]+W|(?:${years}|${months}|${days})(?:${clock})?|${clock})`;

/** Leap seconds occur only at 23:59:60 UTC; the local time depends on the offset. */
function leapSecond(): string {
  const two = (n: number): string => String(n).padStart(2, '0');
  const minutes = 24 * 60;
  const clock = (at: number): string => `${two(Math.floor(at / 60))}:${two(at % 60)}`;
  const choices = [`23:59:60${fraction}[zZ]`];
  for (let local = 0; local < minutes; local++) {
    const ahead = (local - (minutes - 1) + minutes) % minutes;
    const behind = (minutes - ahead) % minutes;
    choices.push(`${clock(local)}:60${fraction}(?:\\+${clock(ahead)}|-${clock(behind)})`);
  }
  return choices.join('|');
}

const time = (): string => `(?:${hour}:${minute}:${minute}${fraction}(?:[zZ]|[+\\-]${hour}:${minute})|${leapSecond()})`;

function ipv6(): string {
  const h = '[0-9a-fA-F]{1,4}';
  const tail = `(?:${h}:${h}|${ipv4})`;
  const forms = [`(?:${h}:){6}${tail}`];
  for (let before = 0; before <= 7; before++) {
    const head = before === 0 ? '' : `(?:${h}:){${before - 1}}${h}`;
    for (let after = 0; before + after <= 7; after++) {
      if (after === 0) forms.push(`${head}::`);
      else forms.push(`${head}::(?:${h}:){${after - 1}}${h}`);
      if (after >= 2) forms.push(`${head}::(?:${h}:){${after - 2}}${ipv4}`);
    }
  }
  return forms.join('|');
}

/** RFC 5321, section 4.1.2, `Mailbox`; IPv6 is the only registered tag of address literals. */
function email(): string {
  const atom = "[A-Za-z0-9!#$%&'*+\\-/=?^_`{|}~]+";
  const quoted = '"(?:[ !#-\\[\\]-~]|\\\\[ -~])*"';
  const label = '[A-Za-z0-9](?:[A-Za-z0-9\\-]*[A-Za-z0-9])?';
  return `(?:${atom}(?:\\.${atom})*|${quoted})@(?:${label}(?:\\.${label})*|\\[(?:${ipv4}|[iI][pP][vV]6:(?:${ipv6()}))\\])`;
}

// RFC 3987, section 2.2: the characters that IRIs have and URIs do not.
const PLANES = [...'123456789abcd', 'e'].map(
  (plane) => `\\u{${plane}${plane === 'e' ? '1000' : '0000'}}-\\u{${plane}fffd}`,
);
const UCS_CHARS = `\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef${PLANES.join('')}`;
const PRIVATE_CHARS = '\\ue000-\\uf8ff\\u{f0000}-\\u{ffffd}\\u{100000}-\\u{10fffd}';

/** RFC 3986, appendix A; with more characters, RFC 3987, section 2.2. */
function uriForms(isIri: boolean): { readonly absolute: string; readonly relative: string } {
  const percent = '%[0-9A-Fa-f]{2}';
  const common = `A-Za-z0-9\\-._~!$&'()*+,;=${isIri ? UCS_CHARS : ''}`;
  const one = (more: string): string => `(?:[${common}${more}]|${percent})`;
  const segment = `${one(':@')}*`;
  const future = "[vV][0-9A-Fa-f]+\\.[A-Za-z0-9\\-._~!$&'()*+,;=:]+";
  const host = `(?:\\[(?:${ipv6()}|${future})\\]|${one('')}*)`;
  const network = `//(?:${one(':')}*@)?${host}(?::[0-9]*)?(?:/${segment})*`;
  const rooted = `/(?:${one(':@')}+(?:/${segment})*)?`;
  const query = `(?:\\?${one(`:@/?${isIri ? PRIVATE_CHARS : ''}`)}*)?`;
  const tail = `${query}(?:#${one(':@/?')}*)?`;
  const absolute = `[A-Za-z][A-Za-z0-9+.\\-]*:(?:${network}|${rooted}|${one(':@')}+(?:/${segment})*|)${tail}`;
  return { absolute, relative: `(?:${network}|${rooted}|${one('@')}+(?:/${segment})*|)${tail}` };
}

function uriReference(isIri: boolean): string {
  const { absolute, relative } = uriForms(isIri);
  return `(?:${absolute}|${relative})`;
}

/** RFC 6570, section 2. */
function uriTemplate(): string {
  const percent = '%[0-9A-Fa-f]{2}';
  const literal = `(?:[!#$&-;=?-\\[\\]_a-z~${UCS_CHARS}${PRIVATE_CHARS}]|${percent})`;
  const character = `(?:[A-Za-z0-9_]|${percent})`;
  const variable = `${character}(?:\\.?${character})*(?::[1-9][0-9]{0,3}|\\*)?`;
  return `(?:${literal}|\\{[+#./;?&=,!@|]?${variable}(?:,${variable})*\\})*`;
}

/**
 * Formats that a pattern over the whole text describes exactly, built on first use. Not among them: host names, because
 * labels in Punycode must decode to valid ones, and regular expressions, because their parentheses nest.
 */
export const FORMATS: ReadonlyMap<string, () => string> = new Map([
  ['date', () => date],
  ['time', time],
  ['date-time', () => `${date}[tT]${time()}`],
  ['duration', () => duration],
  ['uuid', () => '[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}'],
  ['ipv4', () => ipv4],
  ['ipv6', ipv6],
  ['email', email],
  ['uri', () => uriForms(false).absolute],
  ['uri-reference', () => uriReference(false)],
  ['iri', () => uriForms(true).absolute],
  ['iri-reference', () => uriReference(true)],
  ['uri-template', uriTemplate],
  ['json-pointer', () => '(?:/(?:[^~/]|~[01])*)*'],
  ['relative-json-pointer', () => '(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)'],
]);
