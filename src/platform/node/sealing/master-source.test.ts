import { describe, expect, test } from 'vitest';
import { createScryptParameters, masterKeyOf, masterSourceOf, parseScryptParameters } from './master-source.ts';

describe('where the master key comes from', () => {
  test('[MS18] scrypt as in RFC 7914, with parameters that are kept', () => {
    const parameters = { n: 2 ** 14, r: 8, p: 1, salt: Buffer.from('0123456789abcdef').toString('base64') };
    // Made with Python: hashlib.scrypt(b'pleaseletmein', salt=b'0123456789abcdef', n=2**14, r=8, p=1, dklen=32).
    expect(Buffer.from(masterKeyOf({ passphrase: 'pleaseletmein' }, parameters)).toString('hex')).toBe(
      'c0e0654cbc76913bc39e533b19e46a2cf25268bf1d80ee8c6e26ab9fa5851c42',
    );
    expect(createScryptParameters()).toMatchObject({ n: 2 ** 17, r: 8, p: 1 });
    expect(createScryptParameters().salt).not.toBe(createScryptParameters().salt);
    expect(parseScryptParameters(createScryptParameters())).not.toBeNull();
    for (const bad of [
      null,
      {},
      { ...parameters, n: 2 ** 21 },
      { ...parameters, n: 1000 },
      { ...parameters, r: 9 },
      { ...parameters, p: 2 },
      { ...parameters, salt: 'AA==' },
    ]) {
      expect(parseScryptParameters(bad)).toBeNull();
    }
  });

  test('[MS18] from the environment: a key, a passphrase, nothing; both or a wrong one are refused', () => {
    const key = Buffer.alloc(32, 5);
    expect(masterSourceOf({})).toBeNull();
    expect(masterSourceOf({ RUVLLM_PASSPHRASE: 'x y' })).toEqual({ passphrase: 'x y' });
    expect(masterSourceOf({ RUVLLM_MASTER_KEY: `${key.toString('base64')}\n` })).toEqual({ key });
    expect(masterSourceOf({ RUVLLM_MASTER_KEY: key.toString('base64').replaceAll('=', '') })).toEqual({ key });
    const both = { RUVLLM_MASTER_KEY: 'a', RUVLLM_PASSPHRASE: 'b' };
    expect(() => masterSourceOf(both)).toThrow('both set');
    for (const text of ['', 'secret!', Buffer.alloc(31).toString('base64'), key.toString('hex')]) {
      let message = '';
      try {
        masterSourceOf({ RUVLLM_MASTER_KEY: text });
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).toBe('RUVLLM_MASTER_KEY must be 32 bytes in base64'); // and shows nothing of it
    }
  });
});
