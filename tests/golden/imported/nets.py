"""The networks of the golden exports, as their papers and torchvision have them, with a factor for the widths."""
import torch
from torch import nn
import torch.nn.functional as F


class LeNet(nn.Module):
    """LeNet-5 as tutorials write it: ReLU, max pooling, `view`."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.downsample = None
        if stride != 1 or i != o:
            self.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet18(nn.Module):
    """ResNet-18 with the 3x3 stem of small images."""

    def __init__(self, width=64, classes=10):
        super().__init__()
        w = [width, 2 * width, 4 * width, 8 * width]
        self.conv1 = nn.Conv2d(3, w[0], 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(w[0])
        self.relu = nn.ReLU(inplace=True)
        blocks, i = [], w[0]
        for k, o in enumerate(w):
            blocks.append(nn.Sequential(BasicBlock(i, o, 1 if k == 0 else 2), BasicBlock(o, o, 1)))
            i = o
        self.layer1, self.layer2, self.layer3, self.layer4 = blocks
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(i, classes)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def divisible(v, d=8):
    new = max(d, int(v + d / 2) // d * d)
    return new + d if new < 0.9 * v else new


class ConvBnAct(nn.Sequential):
    def __init__(self, i, o, k=3, stride=1, groups=1, act=nn.ReLU6, eps=1e-5):
        layers = [nn.Conv2d(i, o, k, stride, (k - 1) // 2, groups=groups, bias=False), nn.BatchNorm2d(o, eps=eps)]
        super().__init__(*layers, *([act(inplace=True)] if act else []))


class InvertedResidual(nn.Module):
    def __init__(self, i, o, stride, expand):
        super().__init__()
        hidden = i * expand
        self.use_res = stride == 1 and i == o
        layers = [ConvBnAct(i, hidden, 1)] if expand != 1 else []
        layers += [ConvBnAct(hidden, hidden, 3, stride, hidden), nn.Conv2d(hidden, o, 1, bias=False), nn.BatchNorm2d(o)]
        self.conv = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.conv(x) if self.use_res else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self, width=1.0, classes=10, dropout=0.2):
        super().__init__()
        settings = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
        i, last = divisible(32 * width), divisible(1280 * max(width, 0.1))
        layers = [ConvBnAct(3, i, 3, 2)]
        for t, c, n, s in settings:
            for k in range(n):
                layers.append(InvertedResidual(i, divisible(c * width), s if k == 0 else 1, t))
                i = divisible(c * width)
        layers.append(ConvBnAct(i, last, 1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(last, classes))

    def forward(self, x):
        x = F.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(torch.flatten(x, 1))


class SqueezeExcite(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(c, divisible(c // 4), 1)
        self.fc2 = nn.Conv2d(divisible(c // 4), c, 1)
        self.activation, self.scale_activation = nn.ReLU(), nn.Hardsigmoid()

    def forward(self, x):
        s = self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(x)))))
        return s * x


class V3Block(nn.Module):
    def __init__(self, i, k, e, o, se, hs, stride):
        super().__init__()
        act = nn.Hardswish if hs else nn.ReLU
        self.use_res = stride == 1 and i == o
        layers = [ConvBnAct(i, e, 1, act=act, eps=0.001)] if e != i else []
        layers.append(ConvBnAct(e, e, k, stride, e, act=act, eps=0.001))
        layers += [SqueezeExcite(e)] if se else []
        layers.append(ConvBnAct(e, o, 1, act=None, eps=0.001))
        self.block = nn.Sequential(*layers)

    def forward(self, x):
        return self.block(x) + x if self.use_res else self.block(x)


class MobileNetV3Small(nn.Module):
    def __init__(self, width=1.0, classes=10, dropout=0.2):
        super().__init__()
        a = lambda c: divisible(c * width)
        rows = [(16, 3, 16, 16, 1, 0, 2), (16, 3, 72, 24, 0, 0, 2), (24, 3, 88, 24, 0, 0, 1), (24, 5, 96, 40, 1, 1, 2),
                (40, 5, 240, 40, 1, 1, 1), (40, 5, 240, 40, 1, 1, 1), (40, 5, 120, 48, 1, 1, 1), (48, 5, 144, 48, 1, 1, 1),
                (48, 5, 288, 96, 1, 1, 2), (96, 5, 576, 96, 1, 1, 1), (96, 5, 576, 96, 1, 1, 1)]
        layers = [ConvBnAct(3, a(16), 3, 2, act=nn.Hardswish, eps=0.001)]
        layers += [V3Block(a(i), k, a(e), a(o), se, hs, s) for i, k, e, o, se, hs, s in rows]
        layers.append(ConvBnAct(a(96), 6 * a(96), 1, act=nn.Hardswish, eps=0.001))
        self.features, self.avgpool = nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Linear(6 * a(96), a(1024)), nn.Hardswish(inplace=True), nn.Dropout(dropout, inplace=True), nn.Linear(a(1024), classes))

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class Fire(nn.Module):
    def __init__(self, i, s, e):
        super().__init__()
        self.squeeze, self.squeeze_activation = nn.Conv2d(i, s, 1), nn.ReLU(inplace=True)
        self.expand1x1, self.expand1x1_activation = nn.Conv2d(s, e, 1), nn.ReLU(inplace=True)
        self.expand3x3, self.expand3x3_activation = nn.Conv2d(s, e, 3, padding=1), nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.squeeze_activation(self.squeeze(x))
        return torch.cat([self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))], 1)


class SqueezeNet(nn.Module):
    """SqueezeNet 1.1: its classifier is a 1x1 convolution, and its poolings round up."""

    def __init__(self, width=1.0, classes=10, dropout=0.5):
        super().__init__()
        w = lambda c: max(4, int(c * width))
        pool = lambda: nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True)
        fire = lambda i, s, e: Fire(w(i) if i == 64 else 2 * w(i // 2), w(s), w(e))
        self.features = nn.Sequential(
            nn.Conv2d(3, w(64), 3, stride=2), nn.ReLU(inplace=True), pool(),
            fire(64, 16, 64), fire(128, 16, 64), pool(), fire(128, 32, 128), fire(256, 32, 128), pool(),
            fire(256, 48, 192), fire(384, 48, 192), fire(384, 64, 256), fire(512, 64, 256))
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Conv2d(2 * w(256), classes, 1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1)))

    def forward(self, x):
        return torch.flatten(self.classifier(self.features(x)), 1)


class Signal(nn.Module):
    """A network over time: dilation, padding, SiLU, LeakyReLU, group norm, a mean over time, a gate."""

    def __init__(self, classes=6):
        super().__init__()
        self.conv1 = nn.Conv1d(3, 12, 5, stride=2, padding=2)
        self.gn1 = nn.GroupNorm(3, 12)
        self.conv2 = nn.Conv1d(12, 16, 3, padding=2, dilation=2, groups=4)
        self.bn2 = nn.BatchNorm1d(16)
        self.pool = nn.MaxPool1d(3, 2, padding=1)
        self.conv3 = nn.Conv1d(16, 24, 3, padding=1)
        self.in3 = nn.InstanceNorm1d(24, affine=True)
        self.average = nn.AvgPool1d(2)
        self.gate = nn.Conv1d(16, 24, 1)
        self.fc1 = nn.Linear(24, 20)
        self.fc2 = nn.Linear(20, classes)

    def forward(self, x):
        x = F.silu(self.gn1(self.conv1(x)))
        x = self.pool(F.leaky_relu(self.bn2(self.conv2(x)), 0.1))
        x = self.average(self.in3(self.conv3(x)) * torch.sigmoid(self.gate(x)))
        x = x.mean(dim=2)
        return torch.softmax(self.fc2(torch.clamp(self.fc1(x), -1.0, 2.0)), dim=1)


class Own(nn.Module):
    """What a user might bring along: small, with a norm, a gate and a depthwise convolution."""

    def __init__(self, classes=4):
        super().__init__()
        self.stem = ConvBnAct(1, 8, stride=2, act=nn.SiLU)
        self.depthwise = ConvBnAct(8, 8, groups=8, act=nn.Hardswish)
        self.gate = SqueezeExcite(8)
        self.project = nn.Linear(8, 16)
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        x = self.gate(self.depthwise(self.stem(x))).mean(dim=(2, 3))
        return F.log_softmax(self.head(F.relu(self.project(x))), dim=1)


class Conditioned(nn.Module):
    """With an input for a client's statistics, joined behind that of the first fully connected layer."""

    def __init__(self, classes=4):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.project = nn.Linear(4 * 4 * 4 + 12, 16)
        self.head = nn.Linear(16, classes)

    def forward(self, x, statistics):
        x = F.max_pool2d(F.relu(self.conv(x)), 2).flatten(1)
        return self.head(F.relu(self.project(torch.cat([x, statistics], 1))))


class Dropping(nn.Module):
    """Dropouts as the exporter writes them out in training form: of single numbers or, `rows`, of whole samples."""

    def __init__(self, rows=False):
        super().__init__()
        self.fc1, self.act, self.drop, self.fc2 = nn.Linear(6, 8), nn.Hardswish(), nn.Dropout(0.25, inplace=True), nn.Linear(8, 3)
        self.rows = rows

    def forward(self, x):
        x = self.act(self.fc1(x))
        if self.rows:
            return self.fc2(x * torch.empty([x.size(0), 1]).bernoulli_(0.75).div_(0.75))
        return self.fc2(self.drop(x))


class Odd(nn.Module):
    """What exporters write in ways of their own: padding on two sides only, a lower bound alone."""

    def __init__(self):
        super().__init__()
        self.pad, self.conv, self.head = nn.ZeroPad2d((0, 1, 2, 1)), nn.Conv2d(2, 3, 3, stride=2), nn.Linear(3 * 4 * 3, 4)

    def forward(self, x):
        return self.head(self.conv(self.pad(x)).clamp(min=0.1).clamp(max=2).flatten(1))


# name -> (network, extents of a sample)
def narrow():
    return {
        "lenet": (LeNet(), (1, 28, 28)),
        "resnet18": (ResNet18(4), (3, 32, 32)),
        "mobilenet_v2": (MobileNetV2(0.1, dropout=0.0), (3, 96, 96)),
        "mobilenet_v3_small": (MobileNetV3Small(0.1, dropout=0.0), (3, 64, 64)),
        "squeezenet": (SqueezeNet(0.125, dropout=0.0), (3, 64, 64)),
        "signal": (Signal(), (3, 128)),
        "odd": (Odd(), (2, 7, 7)),
    }


def full():
    return {
        "lenet": (LeNet(), (1, 28, 28)),
        "resnet18": (ResNet18(), (3, 32, 32)),
        "mobilenet_v2": (MobileNetV2(dropout=0.0), (3, 96, 96)),
        "mobilenet_v3_small": (MobileNetV3Small(dropout=0.0), (3, 64, 64)),
        "squeezenet": (SqueezeNet(dropout=0.0), (3, 64, 64)),
        "signal": (Signal(), (3, 128)),
    }
