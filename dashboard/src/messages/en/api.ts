export const api = {
  unreachable: 'Cannot reach the server. Check that it is running and that this device is connected.',
  lostConnection: (reason: string) => `Lost the connection to the server: ${reason}`,
  incomplete: 'The stream ended before the answer was complete.',
  ended: 'The server closed the stream.',
};
