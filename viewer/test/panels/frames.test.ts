import { describe, expect, it } from 'vitest';
import { isFramework, openingFrame, stackOf, type Frame } from '../../src/panels/frames.ts';

const frame = (file: string, line = 1): Frame => ({ file, line, fn: 'f' });
const CALL = frame('/usr/lib/python3/dist-packages/torch/nn/modules/module.py', 1779);
const MAIN = frame('/home/me/train.py', 40);
const MODEL = frame('/home/me/model.py', 12);
const LINEAR = frame('/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py', 134);

describe('frames', () => {
  it.each([
    ['/venv/lib/python3.11/site-packages/torch/nn/functional.py', true],
    ['C:\\py\\Lib\\site-packages\\torch\\nn\\functional.py', true],
    ['/usr/lib/python3/dist-packages/jittor/nn.py', true],
    ['/venv/site-packages/paddle/nn/layer.py', true],
    ['/venv/site-packages/megengine/module/conv2d.py', true],
    ['/venv/site-packages/hidet/graph/ops.py', true],
    ['<frozen runpy>', true],
    ['/venv/site-packages/torchvision/models/resnet.py', false],
    ['/venv/site-packages/transformers/models/llama.py', false],
    ['/home/me/torch/nn/mine.py', false],
    ['/home/me/train.py', false],
  ])('%s: %s', (file, framework) => {
    expect(isFramework(file)).toBe(framework);
  });

  it('of the user come innermost first, those of the framework are counted and keep their places', () => {
    const stack = stackOf([MAIN, CALL, MODEL, CALL, LINEAR]);
    expect(stack.user).toEqual([MODEL, MAIN]);
    expect(stack.folded).toBe(3);
    expect(stack.all.map((entry) => entry.frame)).toEqual([LINEAR, CALL, MODEL, CALL, MAIN]);
  });

  it('the source opens at the innermost of the user with text, never in the framework if there is another', () => {
    expect(openingFrame([MAIN, MODEL, LINEAR], () => true)).toBe(MODEL);
    expect(openingFrame([MAIN, MODEL, LINEAR], (file) => file === MAIN.file || file === LINEAR.file)).toBe(MAIN);
    expect(openingFrame([MAIN, MODEL, LINEAR], () => false)).toBe(MODEL);
    expect(openingFrame([CALL, LINEAR], () => false)).toBe(LINEAR);
    expect(openingFrame([], () => true)).toBeUndefined();
  });
});
