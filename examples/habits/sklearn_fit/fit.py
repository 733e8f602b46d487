"""scikit-learn: no epochs, nothing to resume, and a pickle at the end."""

import argparse
import json
import os
import time

import joblib
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

parser = argparse.ArgumentParser()
parser.add_argument("--out", default=".")
parser.add_argument("--trees", type=int, default=30)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

x, y = load_digits(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x, y, random_state=args.seed)
model = RandomForestClassifier(args.trees, random_state=args.seed).fit(x_train, y_train)
time.sleep(3)
joblib.dump(model, os.path.join(args.out, "model.pkl"))
with open(os.path.join(args.out, "metrics.json"), "w") as file:
    json.dump({"accuracy": model.score(x_test, y_test)}, file)
