#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The peer of data_rate: torchvision's ImageFolder in PyTorch's DataLoader.

usage: data_peer.py FOLDER WORKERS SECONDS     images per second, as data_rate counts them
       data_peer.py --make FOLDER PICTURES PHOTO...
           makes a set: windows of 500 x 375 pixels of photographs, quality 90
"""
import os
import random
import sys
import time


def make(folder, count, photos):
    from PIL import Image

    random.seed(1)
    photos = [Image.open(p).convert("RGB") for p in photos]
    for part, n in (("train", count), ("val", count // 4)):
        for i in range(n):
            place = f"{folder}/{part}/class{i % 4}"
            os.makedirs(place, exist_ok=True)
            photo = random.choice(photos)
            x, y = random.randint(0, photo.width - 500), random.randint(0, photo.height - 375)
            photo.crop((x, y, x + 500, y + 375)).save(f"{place}/{i}.jpg", quality=90)


def measure(folder, workers, seconds):
    import torch
    from torchvision import datasets, transforms as t

    torch.set_num_threads(1)
    data = datasets.ImageFolder(f"{folder}/train", t.Compose([
        t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.ToTensor(),
        t.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]))
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True, drop_last=True,
                                         num_workers=workers, persistent_workers=workers > 0)
    step = images = 0
    began = until = float("inf")
    while time.monotonic() < until:
        for pictures, _ in loader:
            step += 1
            images += len(pictures) if step > 4 else 0
            if step == 4:
                began = time.monotonic()
                until = began + seconds
            if time.monotonic() >= until:
                break
    print(f"{images / (time.monotonic() - began):.1f}")


if sys.argv[1] == "--make":
    make(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
else:
    measure(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
