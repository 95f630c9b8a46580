import { RuvLLMError } from '../core/errors.ts';
import { IMAGE_LIMITS } from '../vision/image-limits.ts';

const DATA_URL = /^data:([\w.+/-]*)(?:;[\w.+=-]+)*;base64,/i;

function fail(code: 'invalid_option' | 'unsupported', path: string, message: string): never {
  throw new RuvLLMError(code, `'${path}': ${message}`, { data: { option: path } });
}

/** The bytes of a data URL. Other URLs are refused: fetching them would let a client reach the server's network. */
export function readDataUrl(url: string, path: string): Uint8Array {
  const head = DATA_URL.exec(url.slice(0, 200));
  if (head !== null) return readBase64(url.slice(head[0].length), path);
  if (/^https?:/i.test(url)) fail('unsupported', path, 'images are not fetched from URLs; send a data URL');
  return fail('invalid_option', path, 'must be a data URL of a PNG or JPEG in base64');
}

export function readBase64(text: string, path: string): Uint8Array {
  const { maxBytes } = IMAGE_LIMITS;
  // Checked before decoding; 4 characters hold 3 bytes.
  if (text.length > Math.ceil(maxBytes / 3) * 4 + 4) {
    fail(
      'invalid_option',
      path,
      `an image of about ${Math.floor((text.length / 4) * 3)} bytes, the limit is ${maxBytes}`,
    );
  }
  try {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  } catch {
    return fail('invalid_option', path, 'the image is not valid base64');
  }
}
