import type { LookupAddress } from 'node:dns';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fetchPublic, isPublicAddress } from './public-fetch.ts';

let numRequests = 0;
const server = createServer((request, response) => {
  numRequests++;
  if (request.url === '/echo') {
    response.writeHead(200, { 'x-method': request.method });
    request.pipe(response);
    return;
  }
  response.writeHead(request.url === '/moved' ? 302 : 200, {
    location: '/',
    'x-echo': String(request.headers['range']),
  });
  response.end('bytes');
});
let port = 0;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => server.close());

const resolveTo =
  (...addresses: string[]) =>
  (_name: string, _options: object, callback: (error: null, found: LookupAddress[]) => void): void =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );

describe('fetchPublic', () => {
  test.each([
    ['127.0.0.1'],
    ['2130706433'],
    ['0x7f000001'],
    ['0x7f.1'],
    ['0177.0.0.1'],
    ['017700000001'],
    ['127.1'],
    ['localhost'],
    ['localhost.'],
    ['LOCALHOST'],
    ['0.0.0.0'],
    ['0'],
    ['[::1]'],
    ['[::]'],
    ['[::ffff:127.0.0.1]'],
    ['[::ffff:7f00:1]'],
    ['[0:0:0:0:0:ffff:0a00:0001]'],
    ['[::127.0.0.1]'],
    ['[64:ff9b::7f00:1]'],
    ['[2002:7f00:1::]'],
    ['[fc00::1]'],
    ['[fd12:3456::1]'],
    ['[fe80::1]'],
    ['[ff02::1]'],
    ['169.254.169.254'],
    ['2852039166'],
    ['10.0.0.1'],
    ['172.16.0.1'],
    ['172.31.255.255'],
    ['192.168.1.1'],
    ['100.64.0.1'],
    ['224.0.0.1'],
    ['255.255.255.255'],
    ['①②⑦.0.0.1'],
    ['127.0.0.1.'],
    ['user:secret@127.0.0.1'],
    ['a.localhost'],
    ['198.19.0.1'],
    ['203.0.113.9'],
    ['[64:ff9b:1::a00:1]'],
    ['[::ffff:0:127.0.0.1]'],
    ['[2001:db8::1]'],
    ['[fec0::1]'],
    ['[5f00::1]'],
    ['[4000::1]'],
  ])('refuses %s', async (host) => {
    const before = numRequests;
    await expect(fetchPublic(`http://${host}:${port}/`, {})).rejects.toMatchObject({
      code: 'download_failed',
      message: expect.stringMatching(/^[^ ]+: refused to connect, because its address is not public$/) as string,
    });
    expect(numRequests).toBe(before);
  });

  test('[K11] refuses a name with any private address', async () => {
    for (const addresses of [['127.0.0.1'], ['93.184.216.34', '10.0.0.1'], ['::ffff:10.0.0.1']]) {
      const lookup = resolveTo(...addresses);
      await expect(fetchPublic(`http://a.example:${port}/`, {}, { lookup })).rejects.toThrow('is not public');
    }
  });

  test('[K11] connects to the address it checked, and resolves a name once', async () => {
    let numLookups = 0;
    const checked: string[] = [];
    const response = await fetchPublic(
      `http://a.example:${port}/`,
      { headers: { range: 'bytes=1-' } },
      {
        lookup(name, options, callback) {
          numLookups++;
          resolveTo('127.0.0.1')(name, options, callback);
        },
        isAllowed: (address) => checked.push(address) > 0,
      },
    );
    expect([response.status, response.headers.get('x-echo'), await response.text()]).toEqual([
      200,
      'bytes=1-',
      'bytes',
    ]);
    expect([numLookups, checked]).toEqual([1, ['127.0.0.1']]);
  });

  test.each([
    ['a text', () => 'bytes'],
    ['bytes', () => new TextEncoder().encode('bytes')],
    ['a stream', () => new Response('bytes').body!],
  ])('sends %s with its method', async (_name, body) => {
    const options = { isAllowed: () => true };
    const reply = await fetchPublic(`http://127.0.0.1:${port}/echo`, { method: 'PUT', body: body() }, options);
    expect([reply.headers.get('x-method'), await reply.text()]).toEqual(['PUT', 'bytes']);
    const wrong = fetchPublic(`http://127.0.0.1:${port}/echo`, { method: 'PUT', body: new FormData() }, options);
    await expect(wrong).rejects.toThrow('a body of this kind is not supported');
  });

  test('does not follow redirects, and ends with its signal', async () => {
    const isAllowed = (): boolean => true;
    const moved = await fetchPublic(`http://127.0.0.1:${port}/moved`, {}, { isAllowed });
    expect([moved.status, moved.headers.get('location')]).toEqual([302, '/']);
    await moved.body!.cancel();
    const aborted = fetchPublic(`http://127.0.0.1:${port}/`, { signal: AbortSignal.abort() }, { isAllowed });
    await expect(aborted).rejects.toThrow('aborted');
  });
});

test('public and private addresses', () => {
  for (const address of ['93.184.216.34', '8.8.8.8', '2606:4700::1111', '64:ff9b::808:808', '::ffff:8.8.8.8'])
    expect([address, isPublicAddress(address)]).toEqual([address, true]);
  expect(isPublicAddress('fe80::1%eth0')).toBe(false);
  expect(isPublicAddress('not an address')).toBe(false);
});
